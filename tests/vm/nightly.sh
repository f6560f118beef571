#!/usr/bin/env bash
# All cases on two kernels; what depends on the version on the other kernels that have sched_ext, and on those that Debian's
# releases come with what needs none.
#
# A kernel that the archive has no longer is named at the end, and is no failure, but for the first two; so is one that it has
# without its drivers, and the cases of frequencies are left out on that. What could not be fetched is a failure. Succeeds if all
# cases on all others do.
#
# usage: tests/vm/nightly.sh [--jobs N] [SERIES...]
#        SERIES is first, second, or what kernel.sh knows; without one, all; N machines at a time (default 2)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

# Loading, serving and ending of schedulers; the loop; and the way back.
by_version=(every_tracer_hears_a_program every_scheduler_loads_where_its_status_says_so every_scheduler_serves_all_and_stops schedulers_serve_two_cpus
    a_player_is_served_beside_others_on_two_cpus
    a_scheduler_that_fails_is_put_out a_missed_deadline_is_heard_at_once
    a_process_keeps_its_reservation_and_is_kept_to_it a_control_group_has_a_reservation_on_two_cpus
    who_loses_its_cpu_while_it_speaks_stands_in_line an_ordinary_task_holds_up_no_chosen_one a_chosen_task_leaves_a_cpu_that_others_keep
    a_chosen_task_does_not_wait_for_a_cpu_that_another_took a_chain_of_short_children_starves_nobody
    who_changes_its_nice_value_gains_no_time children_that_come_and_go_make_no_job_late
    a_reused_number_inherits_no_reservation what_is_left_of_a_budget_serves_who_waits_elsewhere
    a_new_budget_calls_a_cpu_that_its_thread_may_use an_overrun_job_waits_for_none_that_runs_elsewhere
    jobs_without_budget_take_turns_with_the_rest who_wakes_beside_many_waits_no_longer_than_they_do
    a_cpu_goes_while_somebody_waits_for_it_alone
    table_one_keeps_its_deadlines_under_onbeat what_a_killed_onbeat_left_is_put_back
    the_service_knows_programs_by_their_paths)
# With the kernel's drivers, which not all versions come with.
frequencies=(the_speed_follows_the_budgets_under_grace a_job_speeds_up_where_grace_planned_it
    jobs_speed_up_on_the_cpu_that_they_run_on
    a_killed_onbeats_frequency_is_put_back grace_says_so_where_no_governor_sets_its_speeds
    the_speed_of_jobs_comes_back_and_goes_with_the_last_plan
    what_others_say_costs_nobody_its_plan
    who_ends_before_its_plan_is_made_has_none)

# Without sched_ext: what is heard, the loop, and the way back.
without=(every_tracer_hears_a_program heirs_of_a_users_reservations_get_no_more_than_its_quota marks_are_heard table_one_keeps_its_deadlines_under_onbeat what_a_killed_onbeat_left_is_put_back)

jobs=2
if [ "${1-}" = --jobs ]; then
    jobs=$2
    shift 2
fi
[ $# -gt 0 ] || set -- first second 6.16 6.19 7.0 7.2 7.3 7.1.13 6.12 6.1 5.10

cases_for() { # SERIES KERNEL
    case "$1" in
    first | second) ;;
    # It misdescribes its functions: a clear word is all that can be had.
    7.1.13) echo every_scheduler_loads_where_its_status_says_so ;;
    6.12 | 6.1 | 5.10) printf '%s\n' "${without[@]}" ;;
    *)
        printf '%s\n' "${by_version[@]}"
        [ -e "$2/modules/none" ] || printf '%s\n' "${frequencies[@]}"
        ;;
    esac
}

failed=() gone=() driverless=()
for series; do
    status=0
    kernel=$("$here/kernel.sh" "$series") || status=$?
    case "$status $series" in
    "0 "*)
        mapfile -t cases < <(cases_for "$series" "$kernel")
        "$here/run.sh" --jobs "$jobs" --kernel "$series" "${cases[@]}" || failed+=("$series")
        if [ "$series" != 7.1.13 ] && [ -e "$kernel/modules/none" ]; then
            driverless+=("$series ($(cat "$kernel/modules/none"))")
        fi
        ;;
    "76 first" | "76 second") failed+=("$series") ;;
    "76 "*) gone+=("$series") ;;
    *) failed+=("$series") ;;
    esac
done
[ ${#gone[@]} -eq 0 ] || echo "tests/vm: left out, for the archive has no such kernel any more: ${gone[*]}"
for one in "${driverless[@]}"; do
    echo "tests/vm: without the cases of frequencies: $one"
done
[ ${#failed[@]} -eq 0 ] || echo "tests/vm: failed on: ${failed[*]}"
exit $((${#failed[@]} > 0))
