-- Yields the columns and the next numbers of tables, one JSON array per row:
--   ["column", table, column, type]      of the tables whose rows are hashed
--   ["counter", table, next number]
select json_array('column', table_name, column_name, data_type)
from information_schema.columns join information_schema.tables using (table_schema, table_name)
where table_schema = database() and table_type in ('BASE TABLE', 'SYSTEM VERSIONED', 'SEQUENCE')
order by table_name, ordinal_position;
select json_array('counter', table_name, auto_increment)
from information_schema.tables where table_schema = database() and auto_increment is not null;
