-- InnoDB's log knows of every change to its tables, the handlers know of those to others, and the start tells servers apart that
-- have written as much, but not the same. MySQL, which skips what only MariaDB reads, has no mark.
select json_array('mark', concat_ws(' ', null
    /*M! , (select unix_timestamp() - variable_value from information_schema.global_status where variable_name = 'UPTIME')
    , (select group_concat(variable_name, '=', variable_value order by variable_name separator ' ') from information_schema.global_status
        where variable_name in ('INNODB_LSN_CURRENT', 'HANDLER_WRITE', 'HANDLER_UPDATE', 'HANDLER_DELETE', 'HANDLER_DISCOVER',
            'COM_TRUNCATE', 'COM_CREATE_TABLE', 'COM_ALTER_TABLE', 'COM_DROP_TABLE', 'COM_RENAME_TABLE', 'COM_LOAD')
        having count(*) = 11) */
));
