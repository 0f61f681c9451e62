-- Yields the definitions of all objects, one JSON array per row: ["object", kind, name, MD5 of its definition]
select json_array('object', kind, name, md5(definition)) from (
    select 'table' as kind, table_name as name,
        json_array(table_type, engine, row_format, table_collation, create_options, table_comment) as definition
    from information_schema.tables where table_schema = database()
    union all
    select 'column', concat(table_name, '.', column_name),
        json_array(ordinal_position, column_default, is_nullable, column_type, character_set_name, collation_name, extra,
            generation_expression, column_comment)
    from information_schema.columns where table_schema = database()
    union all
    select 'index', concat(table_name, '.', index_name),
        group_concat(json_array(non_unique, column_name, collation, sub_part, index_type, index_comment) order by seq_in_index)
    from information_schema.statistics where table_schema = database() group by table_name, index_name
    union all
    select 'foreign key', concat(table_name, '.', constraint_name),
        group_concat(json_array(column_name, referenced_table_schema, referenced_table_name, referenced_column_name, update_rule, delete_rule)
            order by ordinal_position)
    from information_schema.key_column_usage join information_schema.referential_constraints
        using (constraint_schema, constraint_name, table_name, referenced_table_name)
    where constraint_schema = database() group by table_name, constraint_name
    union all
    select 'constraint', constraint_name, json_array(check_clause)
    from information_schema.check_constraints where constraint_schema = database()
    union all
    select 'partition', concat(table_name, '.', partition_name, coalesce(concat('.', subpartition_name), '')),
        json_array(partition_ordinal_position, partition_method, partition_expression, partition_description, subpartition_expression)
    from information_schema.partitions where table_schema = database() and partition_name is not null
    union all
    select 'view', table_name, json_array(view_definition, check_option, definer, security_type)
    from information_schema.views where table_schema = database()
    union all
    select 'trigger', trigger_name,
        json_array(event_manipulation, event_object_table, action_order, action_timing, action_statement, sql_mode, definer)
    from information_schema.triggers where trigger_schema = database()
    union all
    select lower(routine_type), routine_name,
        json_array(dtd_identifier, routine_definition, is_deterministic, sql_data_access, security_type, sql_mode, definer)
    from information_schema.routines where routine_schema = database()
    union all
    select 'event', event_name,
        json_array(event_definition, execute_at, interval_value, interval_field, starts, ends, status, on_completion, sql_mode, definer)
    from information_schema.events where event_schema = database()
) object;
