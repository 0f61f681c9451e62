-- The log of InnoDB contains every change to its tables. The counters of handlers cover the tables of other engines, and the
-- counters of statements cover objects that are files of their own, such as views. The start time distinguishes servers that
-- have written the same amount, but not the same data. MySQL has no mark, because it skips the part that only MariaDB reads.
select json_array('mark', concat_ws(' ', null
    /*M! , (select concat_ws(' ', unix_timestamp() - max(if(variable_name = 'UPTIME', variable_value, null)),
            max(if(variable_name = 'INNODB_LSN_CURRENT', variable_value, null)),
            max(if(variable_name = 'HANDLER_WRITE', variable_value, null)),
            max(if(variable_name = 'HANDLER_UPDATE', variable_value, null)),
            max(if(variable_name = 'HANDLER_DELETE', variable_value, null)),
            sum(if(variable_name like 'COM\_%', variable_value, 0)),
            sum(if(variable_name like 'COM\_%' and variable_name not like '%\_TEMPORARY\_TABLE', variable_value, 0)))
        from information_schema.global_status
        where variable_name in ('UPTIME', 'INNODB_LSN_CURRENT', 'HANDLER_WRITE', 'HANDLER_UPDATE', 'HANDLER_DELETE')
            or variable_name rlike '^COM_(ALTER|CREATE|DROP|RENAME|TRUNCATE|LOAD|REPAIR)'
        having count(if(variable_name = 'INNODB_LSN_CURRENT', 1, null)) = 1) */
));
