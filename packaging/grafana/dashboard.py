#!/usr/bin/python3
"""Writes the dashboard for Grafana, trestle.json beside this file: rows of panels, three abreast.

    dashboard.py [FILE]

Each panel is a line of ROWS below. tests/e2e/test_grafana.py holds the file against this table and
against the metrics that there are."""

import json
import sys
from pathlib import Path

WIDTH, HEIGHT, COLUMNS = 8, 8, 3
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
HERE = '{instance=~"$instance"}'


def rate(name, by=""):
    """By the second, summed over the rest of the labels."""
    return f"sum by (instance{', ' + by if by else ''}) (rate({name}{HERE}[$__rate_interval]))"


def now(name):
    return f"{name}{HERE}"


def quantile(share, name, by=""):
    more = f", {by}" if by else ""
    buckets = f"rate({name}_bucket{HERE}[$__rate_interval])"
    return f"histogram_quantile({share}, sum by (instance, le{more}) ({buckets}))"


def labelled(name, labels):
    return f'{name}{{instance=~"$instance", {labels}}}'


ERRORS = labelled("trestle_rpcs_total", 'code!="OK"')
HITS = "rate(trestle_store_cache_hits_total" + HERE + "[$__rate_interval])"
MISSES = "rate(trestle_store_cache_misses_total" + HERE + "[$__rate_interval])"

# Title of a row: panels of a title, a unit, queries with what each is called, and what it tells.
ROWS = {
    "At a glance": [
        ("Takes writes", "bool_yes_no", [(now("trestle_store_healthy"), "{{instance}}")],
         "No: there is no space on the disk, or a write has failed; `trestle status` says why."),
        ("What is the matter", "short",
         [(now("trestle_health_level"), "level"), (now("trestle_health"), "{{reason}}")],
         "Level 0: nothing; 1: degraded; 2: no writes. Of the reasons, those that are at 1."),
        ("Requests", "reqps", [(rate("trestle_rpcs_total"), "{{instance}}")],
         "All methods together."),
        ("Errors", "reqps",
         [(f"sum by (instance, code) (rate({ERRORS}[$__rate_interval]))", "{{code}}")],
         "Requests that did not end with OK. NOT_FOUND and the like are clients' own."),
    ],
    "Requests": [
        ("Requests by method", "reqps",
         [(rate("trestle_rpcs_total", "method"), "{{method}}")], ""),
        ("Requests by app profile", "reqps",
         [(rate("trestle_rpcs_total", "app_profile"), "{{app_profile}}")],
         "Methods that know no app profiles have no name here."),
        ("Requests running", "short", [(now("trestle_rpcs_running"), "{{instance}}")], ""),
        ("Latency, median", "s",
         [(quantile(0.5, "trestle_rpc_seconds", "method"), "{{method}}")], ""),
        ("Latency, 99th percentile", "s",
         [(quantile(0.99, "trestle_rpc_seconds", "method"), "{{method}}")], ""),
        ("Rows read", "short", [(rate("trestle_rows_read_total"), "{{instance}}")],
         "By the second."),
        ("Faults injected", "short",
         [(rate("trestle_injected_faults_total"), "{{instance}}")], "By --inject, a second."),
        ("Slow requests", "short", [(rate("trestle_slow_requests_total"), "{{instance}}")],
         "That took longer than --slow-request, a second."),
        ("Slow requests that are kept", "short",
         [(now("trestle_slow_requests_kept"), "{{instance}}")], "To be looked at."),
        ("What is slow", "s",
         [(now("trestle_slow_request_threshold_seconds"), "{{instance}}")], "--slow-request."),
        ("Spans of traces", "short",
         [(rate("trestle_trace_spans_sent_total"), "sent"),
          (rate("trestle_trace_spans_dropped_total"), "dropped")], ""),
    ],
    "Connections": [
        ("Connections", "short", [(now("trestle_connections"), "{{instance}}")], ""),
        ("Connections made and refused", "short",
         [(rate("trestle_connections_accepted_total"), "accepted"),
          (rate("trestle_connections_refused_total"), "refused"),
          (rate("trestle_connections_reserved_total"), "beyond the most, for operators"),
          (rate("trestle_tls_failures_total"), "TLS failed")], "By the second."),
        ("Certificate ends in", "s",
         [(f"{now('trestle_certificate_expiry_timestamp_seconds')} - time()", "{{instance}}")], ""),
        ("Traffic", "Bps",
         [(rate("trestle_received_bytes_total"), "received"),
          (rate("trestle_sent_bytes_total"), "sent")], ""),
    ],
    "Peers": [
        ("Peers", "short",
         [(now("trestle_peers"), "{{instance}}: in the list"),
          (now("trestle_peers_silent"), "{{instance}}: that do not answer")], ""),
        ("Not heard for", "s",
         [(f"time() - {now('trestle_peer_heard_timestamp_seconds')}", "{{instance}} of {{peer}}")],
         "Servers with which changes are copied answer twice a second."),
        ("Clocks ahead", "s",
         [(now("trestle_peer_clock_ahead_seconds"), "{{instance}}: {{peer}}")],
         "Of the peer, beside the server that asks."),
        ("Changes of others, behind", "s",
         [(now("trestle_replication_delay_seconds"), "{{instance}}: of {{peer}}")],
         "The most that is missing here of what clients changed there."),
        ("Changes of others, behind at most", "s",
         [(now("trestle_replication_max_delay_seconds"), "{{instance}}")],
         "Of all other locations."),
        ("From there to here, median", "s",
         [(quantile(0.5, "trestle_replication_latency_seconds", "peer"), "of {{peer}}")],
         "From a change's commit to its being applied here, by both clocks."),
        ("From there to here, 99th percentile", "s",
         [(quantile(0.99, "trestle_replication_latency_seconds", "peer"), "of {{peer}}")], ""),
        ("Not sent yet", "bytes",
         [(now("trestle_replication_queue_bytes"), "{{instance}}: to {{peer}}")],
         "Of what clients changed there, estimated."),
        ("Changes of others", "short",
         [(rate("trestle_replication_changes_total", "peer"), "{{peer}}")],
         "Applied here, by the second."),
        ("Bytes of others", "Bps",
         [(rate("trestle_replication_bytes_total", "peer"), "{{peer}}")], "Unpacked."),
        ("Changes of others that wait", "short",
         [(now("trestle_replication_parked"), "{{instance}}: of {{peer}}")],
         "1 while they do: for the clock, or for a table or family."),
        ("Calls sent on", "short",
         [(rate("trestle_forwarded_calls_total"), "asked elsewhere"),
          (rate("trestle_forwarded_again_total"), "not the first place")],
         "To the clusters that app profiles say, and to the server that leads, by the second."),
        ("How often they began to wait", "short",
         [(rate("trestle_replication_parked_total", "peer, reason"), "of {{peer}}: {{reason}}")],
         "By the second."),
    ],
    "Commits": [
        ("Mutations", "short",
         [(rate("trestle_commits_total"), "batches"),
          (rate("trestle_commit_mutations_total"), "mutations"),
          (rate("trestle_commit_refused_total"), "refused"),
          (rate("trestle_store_syncs_total"), "syncs")], "By the second."),
        ("Time of a commit", "s",
         [(quantile(0.5, "trestle_commit_seconds"), "median"),
          (quantile(0.99, "trestle_commit_seconds"), "99th percentile"),
          (f"{now('trestle_commit_milliseconds')} / 1000", "the one under way")],
         "Sync included. No write is acknowledged before."),
        ("Time of a sync of the log", "s",
         [(quantile(0.5, "trestle_store_sync_seconds"), "median"),
          (quantile(0.99, "trestle_store_sync_seconds"), "99th percentile")],
         "The disk's part of a commit."),
        ("Commit queue", "percent", [(now("trestle_commit_queue_percent"), "{{instance}}")],
         "At 100 % mutations are refused."),
        ("Bytes committed", "Bps", [(rate("trestle_commit_bytes_total"), "{{instance}}")], ""),
        ("Bytes that wait", "bytes", [(now("trestle_commit_queue_bytes"), "{{instance}}")], ""),
        ("Idempotency tokens", "short", [(now("trestle_idempotency_tokens"), "{{instance}}")], ""),
        ("Server times ahead of the clock", "s",
         [(now("trestle_clock_lead_seconds"), "{{instance}}")],
         "0 unless the wall clock was set back, or was wrong."),
    ],
    "Store": [
        ("On the disk", "bytes",
         [(now("trestle_store_table_bytes"), "tables"),
          (now("trestle_store_log_bytes"), "log"),
          (now("trestle_deleted_tables_bytes"), "deleted tables"),
          (now("trestle_backup_bytes"), "backups")], ""),
        ("Free on the disk", "bytes",
         [(now("trestle_disk_free_bytes"), "{{instance}}"),
          (now("trestle_place_free_bytes"), "backups: {{place}}")],
         "Of the data, and of the places of backups and archive that are directories."),
        ("In memory", "bytes",
         [(now("trestle_store_cache_bytes"), "cache"),
          (now("trestle_store_cache_capacity_bytes"), "cache at most"),
          (now("trestle_store_write_buffer_bytes"), "write buffers")], ""),
        ("Cache hits", "percentunit", [(f"{HITS} / ({HITS} + {MISSES})", "{{instance}}")],
         "Of the blocks of tables that were asked for."),
        ("Table files by level", "short",
         [(f"sum by (level) ({now('trestle_store_level_files')})", "level {{level}}")],
         "Many files at level 0 slow reads, and then writes."),
        ("Bytes written by the store", "Bps",
         [(rate("trestle_store_written_bytes_total"), "{{instance}}")],
         "Log, flushes and compactions."),
    ],
    "Flushes and compactions": [
        ("Under way", "short",
         [(now("trestle_store_flushes_running"), "flushes"),
          (now("trestle_store_compactions_running"), "compactions")], ""),
        ("Done", "short",
         [(rate("trestle_store_flushes_total"), "flushes"),
          (rate("trestle_store_compactions_total"), "compactions")], "By the second."),
        ("To be compacted", "bytes",
         [(now("trestle_store_compaction_pending_bytes"), "{{instance}}")], "Estimated."),
        ("Bytes of flushes and compactions", "Bps",
         [(rate("trestle_store_flushed_bytes_total"), "flushed"),
          (rate("trestle_store_compaction_read_bytes_total"), "compactions read"),
          (rate("trestle_store_compaction_written_bytes_total"), "compactions wrote")], ""),
        ("Threads that compact", "short",
         [(rate("trestle_store_compaction_seconds_total"), "{{instance}}")],
         "Seconds of compactions in a second."),
        ("Maintenance: jobs", "short",
         [(now("trestle_maintenance_jobs_queued"), "{{job}} wait"),
          (now("trestle_maintenance_jobs_running"), "{{job}} run")],
         "Collections, compactions at rest, the space of what was dropped."),
        ("Maintenance: pieces", "short",
         [(rate("trestle_maintenance_pieces_total", "job"), "{{job}}")], "By the second."),
        ("Maintenance: threads", "short",
         [(rate("trestle_maintenance_seconds_total", "job"), "{{job}}")],
         "Seconds of these pieces in a second."),
    ],
    "Stalls": [
        ("Writes held back", "bool_yes_no", [(now("trestle_store_stalled"), "{{instance}}")], ""),
        ("Time held back", "percentunit",
         [(f"{rate('trestle_store_stall_milliseconds_total')} / 1000", "{{instance}}")], ""),
        ("How often, and why", "short",
         [(rate("trestle_store_stalls_total", "kind"), "{{kind}}"),
          (rate("trestle_store_stall_causes_total", "cause"), "found: {{cause}}")],
         "By the second."),
    ],
    "Threads": [
        ("Tasks that wait for a thread", "short",
         [(f"sum by (pool) ({now('trestle_pool_queued')})", "{{pool}}")],
         "Of the pool of requests that is 10,000 at most."),
        ("Threads at work", "short",
         [(f"sum by (pool) ({now('trestle_pool_running')})", "{{pool}}"),
          (now("trestle_pool_tasks"), "requests, with those that wait")], ""),
        ("Time that a task waits", "s",
         [(f"{rate('trestle_pool_wait_seconds_total', 'pool')} / "
           f"{rate('trestle_pool_tasks_total', 'pool')}", "{{pool}}")], "On average."),
        ("Slow turns of event loops", "short",
         [(rate("trestle_loop_slow_turns_total"), "{{instance}}")],
         "Of 50 ms or more, by the second."),
        ("The longest turn", "s",
         [(now("trestle_loop_longest_turn_seconds"), "{{instance}}")], "Since the start."),
    ],
    "Tables": [
        ("Tables and tablets", "short",
         [(now("trestle_tables"), "tables"), (now("trestle_tablets"), "tablets"),
          (now("trestle_deleted_tables"), "deleted tables")], ""),
        ("Bytes by table", "bytes", [(now("trestle_table_bytes"), "{{table}}")],
         "The 100 heaviest tables; `other` are the rest together, as in the next three."),
        ("Rows read and written by table", "short",
         [(rate("trestle_table_rows_read_total", "table"), "{{table}}, read"),
          (rate("trestle_table_rows_written_total", "table"), "{{table}}, written")],
         "By the second."),
        ("Bytes read by table", "Bps",
         [(rate("trestle_table_read_bytes_total", "table"), "{{table}}")], ""),
        ("Bytes written by table", "Bps",
         [(rate("trestle_table_written_bytes_total", "table"), "{{table}}")], ""),
        ("Splits and merges", "short",
         [(rate("trestle_tablet_splits_total"), "splits"),
          (rate("trestle_tablet_merges_total"), "merges")], "By the second."),
        ("Hot tablets", "short",
         [(now("trestle_hot_tablets"), "hot"),
          (now("trestle_hot_ranges"), "hot ranges"),
          (now("trestle_heat_ranges"), "ranges counted")], "Of the last day."),
        ("Care of rows", "short",
         [(rate("trestle_rows_mended_total"), "mended"),
          (rate("trestle_rows_unmended_total"), "left in pieces"),
          (rate("trestle_rows_spilled_total"), "spilled")], "By the second."),
        ("Care of tables", "short",
         [(rate("trestle_gc_passes_total"), "garbage collections"),
          (rate("trestle_tables_settled_total"), "settled"),
          (rate("trestle_deleted_tables_dropped_early_total"), "dropped early")],
         "By the second."),
    ],
    "What waits": [
        ("Operations that run", "short", [(now("trestle_operations_running"), "{{instance}}")],
         "With backups of the whole server, and restores from one."),
        ("Advice that waits", "short", [(now("trestle_advice_waiting"), "{{resource}}")],
         "Findings of the schema advisor: warnings and worse that are not muted."),
    ],
    "Datastore": [
        ("Transactions", "short",
         [(now("trestle_datastore_transactions"), "running")], ""),
        ("Transactions by outcome", "short",
         [(rate("trestle_datastore_transactions_begun_total"), "begun"),
          (rate("trestle_datastore_transactions_committed_total"), "committed"),
          (rate("trestle_datastore_transactions_rolled_back_total"), "rolled back"),
          (rate("trestle_datastore_transactions_expired_total"), "expired"),
          (rate("trestle_datastore_transactions_crowded_out_total"), "crowded out")],
         "By the second."),
        ("What transactions have read", "bytes",
         [(now("trestle_datastore_transactions_bytes"), "memory")], ""),
        ("Conflicts", "short",
         [(rate("trestle_datastore_conflicts_total"), "conflicts"),
          (rate("trestle_datastore_lock_waits_total"), "lock waits"),
          (rate("trestle_datastore_lock_timeouts_total"), "lock timeouts"),
          (rate("trestle_datastore_lock_victims_total"), "lock victims")], "By the second."),
    ],
    "Change streams": [
        ("Change streams read", "short",
         [(now("trestle_change_streams"), "{{instance}}"),
          (now("trestle_table_change_stream_readers"), "{{table}}")], ""),
        ("Changes sent", "short",
         [(rate("trestle_change_stream_records_total"), "{{instance}}")],
         "To readers of change streams, a second."),
        ("Bytes of changes sent", "Bps",
         [(rate("trestle_change_stream_bytes_total"), "{{instance}}")], ""),
        ("Log", "bytes",
         [(now("trestle_change_log_bytes"), "{{instance}}"),
          (f"{now('trestle_change_log_quota_bytes')} > 0", "{{instance}}, bound"),
          (now("trestle_table_change_log_bytes"), "{{table}}")],
         "What readers may still come for; by table estimated."),
        ("How far back the log goes", "s",
         [(now("trestle_change_log_reach_seconds"), "{{instance}}")], ""),
        ("Log: written, evicted", "Bps",
         [(rate("trestle_change_log_written_bytes_total"), "written"),
          (rate("trestle_change_log_evicted_bytes_total"), "evicted")],
         "Evicted is what goes before the retention is over (--change-log-bytes)."),
        ("Segments of the log", "short",
         [(now("trestle_change_log_segments"), "there"),
          (f"increase(trestle_change_log_evicted_segments_total{HERE}[1h])",
           "evicted in the last hour")], ""),
        ("How far readers are behind", "s",
         [(now("trestle_change_stream_lag_seconds"), "the slowest of {{instance}}"),
          (now("trestle_table_change_stream_lag_seconds"), "the slowest of {{table}}")],
         "Of those that read at the moment; of others the server knows nothing."),
        ("Kept for the slowest reader", "s",
         [(now("trestle_table_change_stream_left_seconds"), "{{table}}")],
         "Until the retention reaches what it reads next."),
    ],
    "Materialized views": [
        ("Views", "short",
         [(now("trestle_views"), "{{instance}}"),
          (now("trestle_views_not_ready"), "{{instance}}, not READY")], ""),
        ("How far views are behind", "s",
         [(now("trestle_views_lag_seconds"), "the slowest of {{instance}}"),
          (now("trestle_view_lag_seconds"), "{{view}}")],
         "The age of the oldest change that is not in the view."),
        ("Upkeep", "short",
         [(rate("trestle_views_cpu_seconds_total"), "processors, {{instance}}")], ""),
        ("Source rows looked at", "short",
         [(rate("trestle_view_changes_total", "view"), "{{view}}")], "By the second."),
        ("Left out and failed", "short",
         [(f"increase(trestle_view_user_errors_total{HERE}[1h])", "left out: {{view}}"),
          (f"increase(trestle_view_system_errors_total{HERE}[1h])", "rounds failed: {{view}}"),
          (now("trestle_view_excluded_rows"), "left out now: {{view}}")],
         "In the last hour; rows that evaluation fails for, or that are too large."),
        ("Size of views", "bytes",
         [(now("trestle_view_bytes"), "{{view}}"),
          (now("trestle_view_intermediate_bytes"), "{{view}}, intermediate")], ""),
    ],
    "Backups": [
        ("Backups", "short", [(now("trestle_backups"), "{{instance}}")], ""),
        ("Age of the newest", "s",
         [(f"time() - ({now('trestle_backup_newest_timestamp_seconds')} > 0)", "{{instance}}"),
          (f"time() - ({now('trestle_whole_backup_newest_timestamp_seconds')} > 0)",
           "{{instance}}, whole"),
          (f"time() - ({now('trestle_scheduled_backup_newest_timestamp_seconds')} > 0)",
           "scheduled: {{scope}}")],
         ""),
        ("Made and failed", "short",
         [(f"increase(trestle_backups_made_total{HERE}[1h])", "made"),
          (f"increase(trestle_backup_failures_total{HERE}[1h])", "failed"),
          (f"increase(trestle_whole_backups_made_total{HERE}[1h])", "whole, made"),
          (f"increase(trestle_whole_backup_failures_total{HERE}[1h])", "whole, failed"),
          (f"increase(trestle_whole_backup_failures_by_cause_total{HERE}[1h])",
           "whole, failed: {{work}}, {{code}}"),
          (f"increase(trestle_table_backup_failures_total{HERE}[1h])",
           "failed, by {{by}}: {{table}}")],
         "In the last hour."),
        ("Schedules of whole backups", "short",
         [(now("trestle_scheduled_backup_overdue"), "overdue: {{scope}}"),
          (f"increase(trestle_scheduled_backup_failures_total{HERE}[1h])", "failed: {{scope}}")],
         "Of all that a server has, and of parts alone; failures in the last hour."),
    ],
    "Damage": [
        ("Ranges of rows out of service", "short",
         [(now("trestle_damaged_ranges"), "{{instance}}")],
         "`trestle repair --endpoint` names them, and brings back what it can."),
        ("Scrubbed", "Bps", [(rate("trestle_scrubbed_bytes_total"), "{{instance}}")],
         "Table files that are read to find damage, by the second."),
    ],
    "Archive": [
        ("Behind", "s",
         [(now("trestle_archive_lag_seconds"), "oldest that waits"),
          (f"time() - ({now('trestle_archive_newest_timestamp_seconds')} > 0)", "newest archived")],
         "Seconds; nothing waits while nothing is written."),
        ("Bytes", "bytes",
         [(now("trestle_archive_waiting_bytes"), "waiting"),
          (f"increase(trestle_archive_bytes_total{HERE}[1h])", "archived in the last hour")], ""),
        ("Pieces, failures, gaps", "short",
         [(f"increase(trestle_archive_pieces_total{HERE}[1h])", "pieces"),
          (f"increase(trestle_archive_expired_pieces_total{HERE}[1h])", "expired"),
          (f"increase(trestle_archive_failures_total{HERE}[1h])", "failures"),
          (f"increase(trestle_archive_gaps_total{HERE}[1h])", "gaps")], "In the last hour."),
    ],
    "Process": [
        ("Program", "short",
         [(now("trestle_build_info"), "{{instance}}: {{version}}, {{revision}}, "
           "RocksDB {{rocksdb}}")], ""),
        ("Files read again", "short",
         [(rate("trestle_reloads_total", "what"), "{{what}}"),
          (rate("trestle_reload_failures_total", "what"), "{{what}}, failed"),
          (now("trestle_reload_failed"), "{{what}}: the last one failed")],
         "Of access control and TLS, by the second."),
        ("Processors", "short", [(rate("process_cpu_seconds_total"), "{{instance}}")], ""),
        ("Memory", "bytes",
         [(now("process_resident_memory_bytes"), "{{instance}}"),
          (now("trestle_memory_peak_bytes"), "{{instance}}, most"),
          (f"{now('trestle_memory_limit_bytes')} > 0", "{{instance}}, bound")], ""),
        ("Refuses for want of memory", "short", [(now("trestle_memory_short"), "{{instance}}")],
         "1 while calls for data are refused."),
        ("Memory given back", "Bps",
         [(rate("trestle_memory_given_back_bytes_total"), "{{instance}}")],
         "What had come free and did not go by itself."),
        ("Open files", "short", [(now("process_open_fds"), "{{instance}}")], ""),
        ("Time since the start", "s",
         [(f"time() - {now('process_start_time_seconds')}", "{{instance}}")], ""),
        ("Audit lines lost", "short",
         [(f"increase(trestle_audit_lines_lost_total{HERE}[1h])", "{{instance}}")],
         "In the last hour: the file of the audit log could not be written."),
    ],
}  # fmt: skip


def panel(number, place, title, unit, queries, tells):
    return {
        "id": number,
        "type": "timeseries",
        "title": title,
        "description": tells,
        "datasource": SOURCE,
        "gridPos": place,
        "fieldConfig": {
            "defaults": {"unit": unit, "min": 0, "custom": {"fillOpacity": 8, "lineWidth": 1}},
            "overrides": [],
        },
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "targets": [
            {"refId": chr(ord("A") + i), "datasource": SOURCE, "expr": expression,
             "legendFormat": legend}
            for i, (expression, legend) in enumerate(queries)
        ],
    }  # fmt: skip


def row(number, title, top):
    place = {"h": 1, "w": WIDTH * COLUMNS, "x": 0, "y": top}
    return {"id": number, "type": "row", "title": title, "collapsed": False, "gridPos": place,
            "panels": []}  # fmt: skip


def panels():
    out, top = [], 0
    for title, content in ROWS.items():
        out.append(row(len(out) + 1, title, top))
        top += 1
        for i, each in enumerate(content):
            place = {"h": HEIGHT, "w": WIDTH, "x": i % COLUMNS * WIDTH,
                     "y": top + i // COLUMNS * HEIGHT}  # fmt: skip
            out.append(panel(len(out) + 1, place, *each))
        top += -(-len(content) // COLUMNS) * HEIGHT
    return out


def variables():
    source = {"name": "datasource", "label": "Prometheus", "type": "datasource",
              "query": "prometheus"}  # fmt: skip
    query = "label_values(trestle_tables, instance)"
    instance = {"name": "instance", "label": "Server", "type": "query", "datasource": SOURCE,
                "query": query, "definition": query, "refresh": 2, "multi": True,
                "includeAll": True, "current": {"text": "All", "value": "$__all"}}  # fmt: skip
    return [source, instance]


def dashboard():
    return {
        "uid": "trestle",
        "title": "Trestle",
        "description": "Servers of Trestle, by their page /metrics.",
        "tags": ["trestle"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "",
        "templating": {"list": variables()},
        "annotations": {"list": []},
        "links": [],
        "panels": panels(),
    }


def main():
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "trestle.json"
    file.write_text(json.dumps(dashboard(), indent=1) + "\n")


if __name__ == "__main__":
    main()
