-- These settings determine the text of a value. Without the last one, MySQL returns statistics that may be a day old.
set names utf8mb4;
set session time_zone = '+00:00', sql_mode = '', group_concat_max_len = 4194304 /*!80000 , information_schema_stats_expiry = 0 */;
start transaction with consistent snapshot, read only;
