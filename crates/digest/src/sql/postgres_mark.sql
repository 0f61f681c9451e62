-- The write-ahead log contains every change except those numbers of a sequence that were logged in advance. The start time
-- distinguishes servers that have written the same amount, but not the same data.
select json_build_array('mark', concat_ws(' ',
    extract(epoch from pg_postmaster_start_time())::text,
    pg_current_wal_insert_lsn(),
    (select md5(string_agg(concat_ws(' ', schemaname, sequencename, last_value), ',' order by schemaname, sequencename)) from pg_sequences)));
