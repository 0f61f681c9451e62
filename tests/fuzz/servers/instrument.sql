-- A table and a sequence that a statement might change. Every function that does more than read raises an error instead.
create table t (a int primary key, b text);
insert into t values (1, 'x'), (2, 'y');
create sequence s;
create extension if not exists plpgsql;

-- PostgreSQL calls functions `volatile` if their results vary. Those named here only return varying values and change nothing.
create table harmless (name text primary key);
insert into harmless values
    ('random'), ('random_normal'), ('clock_timestamp'), ('timeofday'), ('gen_random_uuid'), ('pg_lock_status'),
    ('pg_blocking_pids'), ('pg_safe_snapshot_blocking_pids'), ('pg_isolation_test_session_is_blocked'),
    ('pg_xact_status'), ('txid_status'), ('pg_current_wal_lsn'), ('pg_current_wal_insert_lsn'), ('pg_current_wal_flush_lsn'),
    ('pg_last_wal_receive_lsn'), ('pg_last_wal_replay_lsn'), ('pg_last_xact_replay_timestamp'), ('pg_is_in_recovery'),
    ('pg_is_wal_replay_paused'), ('pg_get_wal_replay_pause_state'), ('pg_relation_size'), ('pg_table_size'), ('pg_indexes_size'),
    ('pg_total_relation_size'), ('pg_database_size'), ('pg_tablespace_size'), ('pg_notification_queue_usage'),
    ('pg_collation_actual_version'), ('pg_database_collation_actual_version'), ('pg_available_wal_summaries'),
    ('pg_get_shmem_allocations'), ('pg_get_backend_memory_contexts'), ('pg_prepared_xact'), ('pg_last_committed_xact'),
    ('pg_xact_commit_timestamp'), ('pg_xact_commit_timestamp_origin'), ('pg_partition_ancestors'), ('pg_partition_root'),
    ('pg_partition_tree'), ('pg_control_system'), ('pg_control_checkpoint'), ('pg_control_recovery'), ('pg_control_init'),
    ('pg_config'), ('pg_conf_load_time'), ('pg_postmaster_start_time'), ('pg_show_replication_origin_status'),
    ('pg_event_trigger_ddl_commands'), ('pg_event_trigger_dropped_objects'), ('pg_stat_get_xact_numscans'),
    ('pg_replication_origin_progress'), ('pg_replication_origin_session_progress'), ('pg_replication_origin_session_is_setup'),
    ('lastval'), ('currval'), ('amvalidate'), ('current_query'), ('currtid2'), ('pg_get_multixact_members'),
    ('pg_get_wal_resource_managers'), ('pg_jit_available'), ('pg_sequence_last_value'), ('pg_stat_clear_snapshot'),
    ('pg_stat_force_next_flush'), ('pg_stat_have_stats'), ('pg_stat_get_recovery_prefetch');

-- The test's own records, under a name that no statement guesses.
create function set_config_of_test(name text, value text, is_local boolean default false) returns text
    language internal as 'set_config_by_name';

do $instrument$
declare
    f record;
    body text;
begin
    for f in
        select p.oid, p.proname, p.prorettype, p.proretset, pg_get_function_arguments(p.oid) as arguments,
               pg_get_function_result(p.oid) as result
        from pg_proc p
        where p.pronamespace = 'pg_catalog'::regnamespace and p.provolatile = 'v' and p.prokind = 'f'
          and p.proname not in (select name from harmless)
          and not p.proname ~ '^(pg_stat_get_|binary_upgrade_|.*_(in|out|recv|send|handler)$)'
          and not exists (select from unnest(p.proargtypes) a(type) where a.type in ('internal'::regtype, 'cstring'::regtype))
          and p.prorettype not in ('internal'::regtype, 'cstring'::regtype, 'trigger'::regtype, 'event_trigger'::regtype)
    loop
        body := format('begin raise exception ''HARM %s''; end', f.proname);
        begin
            -- A replacement that kept the object id would not take effect: the server would still call the built-in code.
            execute format('alter function %s rename to %I', f.oid::regprocedure, 'unused_' || f.oid);
            execute format('create function pg_catalog.%I(%s) returns %s language plpgsql volatile as %L',
                           f.proname, f.arguments, f.result, body);
        exception when others then
            raise warning '% is as it was: %', f.oid::regprocedure, sqlerrm;
        end;
    end loop;
end
$instrument$;

-- The views over these functions still refer to the old numbers.
do $views$
declare
    v record;
    columns text;
begin
    for v in select * from (values ('pg_file_settings', 'pg_show_all_file_settings'), ('pg_hba_file_rules', 'pg_hba_file_rules'),
                            ('pg_ident_file_mappings', 'pg_ident_file_mappings')) found(view, function)
    loop
        select string_agg(quote_ident(attname), ', ' order by attnum) into columns
        from pg_attribute where attrelid = ('pg_catalog.' || v.view)::regclass and attnum > 0;
        execute format('create or replace view pg_catalog.%I as select %s from pg_catalog.%I()', v.view, columns, v.function);
    end loop;
end
$views$;
