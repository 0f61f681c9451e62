-- Yields ["key", table, column] for each column of a primary key, in the order of the key.
select json_array('key', table_name, column_name) from information_schema.statistics
where table_schema = database() and index_name = 'PRIMARY' order by table_name, seq_in_index;
