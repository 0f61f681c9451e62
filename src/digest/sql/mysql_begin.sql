-- Settings on which the text of a value depends.
set names utf8mb4;
set session time_zone = '+00:00', sql_mode = '', group_concat_max_len = 4194304;
-- MySQL would answer with numbers that it has remembered for a day.
/*!80000 set session information_schema_stats_expiry = 0 */;
start transaction with consistent snapshot, read only;
