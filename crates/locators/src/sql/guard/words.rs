//! The words by which statements are judged: those with which they begin, those that write, and functions that do more
//! than read.

use super::StatementRefusal;

/// The words with which a statement may begin.
pub(super) const BEGINNINGS: [&str; 8] = ["select", "with", "values", "table", "show", "explain", "describe", "desc"];

/// Words that write, wherever they occur.
pub(super) const WRITERS: [&str; 6] = ["into", "update", "insert", "delete", "create", "merge"];

/// The words among [`WRITERS`] that are also functions, and only read if a parenthesis follows.
pub(super) const WRITERS_AND_FUNCTIONS: [&str; 2] = ["insert", "delete"];

/// PostgreSQL views that read files of the server, wherever their names occur.
pub(super) const FILES: [&str; 3] = ["pg_file_settings", "pg_hba_file_rules", "pg_ident_file_mappings"];

/// Functions that do more than read.
const FUNCTIONS: [&str; 46] = [
    "benchmark",
    "connectby",
    "currval",
    "edit",
    "exec",
    "flush_rewrite_rules",
    "fts3_tokenizer",
    "get_lock",
    "gin_clean_pending_list",
    "load_rewrite_rules",
    "lastval",
    "load_extension",
    "load_file",
    "loread",
    "lowrite",
    "master_gtid_wait",
    "master_pos_wait",
    "nextval",
    "pg_cancel_backend",
    "pg_export_snapshot",
    "pg_extension_config_dump",
    "pg_get_process_memory_contexts",
    "pg_nextoid",
    "pg_notify",
    "pg_promote",
    "pg_reload_conf",
    "pg_show_all_file_settings",
    "pg_stat_file",
    "pg_stop_making_pinned_objects",
    "pg_terminate_backend",
    "randomblob",
    "readfile",
    "release_all_locks",
    "release_lock",
    "set_config",
    "setseed",
    "setval",
    "sleep",
    "source_pos_wait",
    "ts_rewrite",
    "ts_stat",
    "writefile",
    "xpath_table",
    "zeroblob",
    "wait_for_executed_gtid_set",
    "wait_until_sql_thread_after_gtids",
];

/// Prefixes of whole families of such functions.
const FAMILIES: [&str; 44] = [
    "asynchronous_connection_",
    "audit_log_",
    "binary_upgrade_",
    "brin_desummarize_",
    "brin_summarize_",
    "crosstab",
    "cursor_to_",
    "database_to_",
    "dblink",
    "group_replication_",
    "keyring_",
    "lo_",
    "pg_advisory_",
    "pg_backup_",
    "pg_clear_",
    "pg_copy_",
    "pg_create_",
    "pg_current_logfile",
    "pg_drop_",
    "pg_file_",
    "pg_hba_",
    "pg_ident_",
    "pg_import_",
    "pg_log_",
    "pg_logdir_",
    "pg_logical_",
    "pg_ls_",
    "pg_read_",
    "pg_replication_",
    "pg_restore_",
    "pg_rotate_",
    "pg_sleep",
    "pg_start_backup",
    "pg_stat_reset",
    "pg_stop_backup",
    "pg_switch_",
    "pg_sync_",
    "pg_try_advisory_",
    "pg_wal_",
    "query_to_",
    "service_get_",
    "service_release_",
    "spider_",
    "sys_",
];

/// Refuses the call of a function that may do more than read.
pub(super) fn refuse_function(name: &str) -> Result<(), StatementRefusal> {
    if FUNCTIONS.contains(&name) || FAMILIES.iter().any(|family| name.starts_with(family)) {
        return Err(format!("a locator only reads: `{name}` may do more than that").into());
    }
    Ok(())
}
