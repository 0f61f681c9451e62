//! The contract of the trait `Engine`: each sentence of its documentation is a case that runs on the in-memory engine
//! and on Docker.
//!
//! `cargo test --test contract fake` has no requirements; `cargo test --test contract docker` needs a Docker engine. If
//! the two differ, the in-memory engine is wrong.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod bed;

mod addresses;
mod archives;
mod containers;
mod events;
mod exec;
mod frozen;
mod images;
mod logs;
mod lost;
mod networks;
mod volumes;

/// Generates a test on each engine for each case.
macro_rules! on_each_engine {
    ($($module:ident { $($case:ident,)* })*) => {
        mod fake {
            $(mod $module {
                $(#[tokio::test(start_paused = true)]
                async fn $case() {
                    crate::bed::Bed::in_memory(stringify!($case)).await.run(crate::$module::$case).await;
                })*
            })*
        }

        mod docker {
            $(mod $module {
                $(#[tokio::test]
                async fn $case() {
                    crate::bed::Bed::on_docker(stringify!($case)).await.run(crate::$module::$case).await;
                })*
            })*
        }
    };
}

on_each_engine! {
    containers {
        the_engine_says_what_it_is,
        create_is_refused_where_the_name_is_taken,
        create_is_refused_without_its_image,
        create_is_refused_without_the_folder_that_it_mounts,
        create_without_its_network_starts_nothing,
        created_containers_bear_the_labels_of_their_image_and_their_own,
        containers_are_found_by_label_whatever_they_do,
        running_lists_what_runs,
        start_and_stop_are_idempotent,
        a_process_that_ends_by_itself_leaves_its_code,
        stop_leaves_the_code_of_the_process,
        stop_kills_after_the_grace_period,
        what_is_not_there_is_not_found,
        remove_is_idempotent_and_takes_running_containers,
        inspect_says_what_a_container_does,
        health_checks_pass,
        weight_changes_at_any_time,
        files_outlive_a_stop_and_memory_does_not,
    }
    frozen {
        freeze_and_thaw,
        freezing_what_does_not_run_is_refused,
        frozen_containers_refuse_commands_and_starts,
        frozen_containers_stop,
        frozen_containers_are_removed,
    }
    networks {
        networks_are_found_by_label_and_their_ranges_are_taken,
        a_range_that_overlaps_is_refused,
        networks_in_use_stay,
        removing_a_network_is_idempotent,
        two_networks_may_have_one_name,
    }
    volumes {
        volumes_are_found_by_label,
        volumes_that_are_there_stay_as_they_are,
        volumes_in_use_stay,
        volumes_outlive_their_containers,
        volumes_are_shared,
        volumes_of_the_image_go_with_the_container,
        builders_get_the_files_of_the_image,
        read_only_volumes_are_not_written,
    }
    addresses {
        containers_have_addresses_of_their_network,
        addresses_are_given_up_at_the_end,
        the_first_network_gives_the_address,
    }
    images {
        images_are_looked_up_by_id_and_name,
        images_are_listed_by_label,
        builds_give_labels_and_run_commands,
        builds_of_the_same_are_one_image,
        builds_that_fail_say_why,
        builds_stop_at_their_target,
        committed_images_have_files_and_labels,
        committed_images_have_nothing_of_mounts,
        a_commit_takes_its_name_over,
        names_are_given_and_taken,
        images_in_use_stay,
        images_that_others_stand_on_stay,
        bases_without_a_name_go_with_the_last_that_stands_on_them,
        saved_images_load_again,
        what_nobody_has_cannot_be_saved_or_pulled,
    }
    exec {
        commands_answer_with_code_and_output,
        commands_read_their_input_to_its_end,
        commands_run_as_the_user_that_is_named,
        commands_end_at_their_limit_for_the_caller,
        commands_that_do_not_exist_fail,
        commands_need_a_running_container,
    }
    logs {
        logs_are_read_whole_or_from_their_end,
        logs_keep_errors_apart,
        logs_are_read_from_a_time_on,
        logs_carry_times,
        logs_are_followed_to_the_end_of_the_container,
        logs_of_nothing_are_an_error,
    }
    archives {
        files_and_folders_are_read,
        archives_there_and_back_keep_owners_and_modes,
        archives_reach_volumes_and_folders_of_the_host,
        archives_are_unpacked_before_the_first_start,
        what_is_not_there_cannot_be_read,
        archives_need_a_folder_to_go_to,
        a_read_only_root_is_not_written,
    }
    events {
        every_step_of_a_life_is_told,
        freezing_is_told,
        kills_are_told,
        removals_of_running_containers_are_told,
        only_what_bears_the_label_is_told,
    }
    lost {
        a_create_whose_caller_goes_away_is_found_by_its_label,
        a_stop_whose_caller_goes_away_goes_on,
    }
}
