-- Yields those definitions of mysql_objects.sql that the server keeps in its own tables. It keeps the others in files.
select json_array('object', kind, name, md5(definition)) from (
    select lower(routine_type) as kind, routine_name as name,
        json_array(dtd_identifier, routine_definition, is_deterministic, sql_data_access, security_type, sql_mode, definer) as definition
    from information_schema.routines where routine_schema = database()
    union all
    select 'event', event_name,
        json_array(event_definition, execute_at, interval_value, interval_field, starts, ends, status, on_completion, sql_mode, definer)
    from information_schema.events where event_schema = database()
) object;
