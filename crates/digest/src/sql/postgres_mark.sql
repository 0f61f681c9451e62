-- Every change is in the write-ahead log, but for numbers that a sequence has logged ahead. The time of the start tells servers
-- apart that have written as much, but not the same.
select json_build_array('mark', concat_ws(' ',
    extract(epoch from pg_postmaster_start_time())::text,
    pg_current_wal_insert_lsn(),
    (select md5(string_agg(concat_ws(' ', schemaname, sequencename, last_value), ',' order by schemaname, sequencename)) from pg_sequences)));
