/* What a start finds at the ends of the logs, in words: see log_ends.h.
 *
 *   below what was recorded as synced   something is missing or broken: loss, the store does not
 *                                       open (unless it is asked to salvage)
 *   above it                            a power cut may have torn it: told, and the store opens.
 *                                       Unless what is behind proves that it was synced: loss
 *   a recorded log that is not there    loss
 *   commits that are there twice        no loss, but RocksDB must not see the second ones: for an
 *                                       opening the same as a loss
 *
 * A directory of a format before SYNCED has the proof alone. */
#include "store/log_ends.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

typedef unsigned long long number; /* as printf wants it */

__attribute__((format(printf, 2, 3))) static void say(std::string *words, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    words->append(words->empty() ? "" : "; ");
    words->append(text);
}

/* --- words --- */

static void say_torn(std::string *words, const log_scan &scan)
{
    const char *what = "up to 100 ms of acknowledged writes before the stop may be missing";
    if (scan.ends_unsynced)
        what = "writes that were acknowledged before they were synced may be missing";
    say(words,
        "the log ends at byte %llu; %s: of %s %llu bytes were dropped behind that, with %llu whole "
        "commits",
        (number)scan.end, what, log_name(scan.number).c_str(), (number)(scan.size - scan.end),
        (number)scan.commits_behind);
}

/* Names the gaps that cannot be read. Further ones are counted. */
static void say_gaps(std::string *words, const log_scan &scan)
{
    enum : size_t { MOST = 4 };
    for (size_t i = 0; i < scan.gaps.size() && i < MOST; i++) {
        const log_gap &gap = scan.gaps[i];
        std::string changes =
            std::to_string(gap.changes) + (gap.changes == 1 ? " change" : " changes");
        words->append(i == 0 ? "; not to be read: " : ", ");
        words->append("bytes " + std::to_string(gap.from) + " to " + std::to_string(gap.to - 1) +
                      (gap.changes == 0 ? "" : ", " + changes));
    }
    if (scan.gaps.size() > MOST)
        words->append(" and " + std::to_string(scan.gaps.size() - MOST) + " places more");
}

static void say_lost(std::string *words, const log_scan &scan, const synced_log &recorded)
{
    std::string name = log_name(scan.number);
    if (scan.size < recorded.length)
        say(words, "write-ahead log %s ends at byte %llu, but was synced up to byte %llu",
            name.c_str(), (number)scan.end, (number)recorded.length);
    else
        say(words,
            "write-ahead log %s is damaged at byte %llu, and was synced up to byte %llu; %llu "
            "whole commits are behind the damage",
            name.c_str(), (number)scan.damage, (number)recorded.length,
            (number)scan.commits_behind);
    say_gaps(words, scan);
}

static void say_proven(std::string *words, const log_scan &scan)
{
    say(words,
        "write-ahead log %s is damaged at byte %llu, before synced writes; %llu whole commits are "
        "behind the damage",
        log_name(scan.number).c_str(), (number)scan.damage, (number)scan.commits_behind);
    say_gaps(words, scan);
}

static void say_twin(std::string *words, const log_scan &scan)
{
    std::string twin = log_name(scan.twin);
    say(words, "write-ahead log %s has commits again from byte %llu on, which %s",
        log_name(scan.number).c_str(), (number)scan.end,
        scan.twin == scan.number ? "it has before that" : ("are those of " + twin).c_str());
}

/* Names the tables that a loss in that log, or behind it, may concern. */
static void say_tables(std::string *words, const synced_record &record, uint64_t first_lost)
{
    std::string names;
    uint64_t more = record.unnamed_tables;
    for (const logged_table &table : record.tables)
        if (table.last_log >= first_lost)
            names += (names.empty() ? "" : ", ") + table.name;
    if (more > 0)
        names += " and " + std::to_string(more) + " more";
    if (!names.empty())
        words->append("; written at that time: " + names);
}

static void say_time(std::string *words, const synced_record &record)
{
    char date[CLOCK_DATE_SIZE];
    say(words, "the last synced commit was at %s or just before",
        clock_date(record.written_us, date));
}

/* --- judging --- */

namespace {

class judge {
  public:
    judge(log_findings *findings_, const synced_record *recorded_)
        : findings(findings_), recorded(recorded_)
    {
    }

    void look_at(const log_scan &scan)
    {
        const synced_log *entry = find(scan.number);
        uint64_t length = entry != nullptr ? entry->length : 0;
        bool is_ended = entry != nullptr && entry->is_ended;
        bool is_lost = scan.twin != 0 || scan.end < length || (scan.is_proven && !is_ended);
        findings->largest = std::max(findings->largest, scan.largest);
        if (scan.end < scan.size)
            findings->broken.push_back(scan);
        if (scan.twin != 0)
            tell_twin(scan);
        else if (scan.end < length)
            lose(scan.number, [&](std::string *words) { say_lost(words, scan, *entry); });
        else if (is_lost)
            lose(scan.number, [&](std::string *words) { say_proven(words, scan); });
        else if (scan.end < scan.size && !is_ended)
            tear(scan);
        /* what is behind the end of a log that had ended stays unread */
        uint64_t end = is_ended && !is_lost ? length : scan.end;
        if (end > 0)
            findings->record.logs.push_back({scan.number, end, true});
    }

    void look_for(const synced_log &entry)
    {
        lose(entry.number, [&](std::string *words) {
            say(words, "write-ahead log %s is gone, of which %llu bytes were synced",
                log_name(entry.number).c_str(), (number)entry.length);
        });
    }

    void finish()
    {
        findings->record.tables = recorded->tables;
        findings->record.families = recorded->families;
        findings->record.written_us = recorded->written_us;
        findings->record.manifest = recorded->manifest;
        findings->record.manifest_length = recorded->manifest_length;
        if (!findings->has_loss || recorded->written_us == 0)
            return;
        say_time(&findings->words, *recorded);
        say_tables(&findings->words, *recorded, first_lost);
    }

  private:
    const synced_log *find(uint64_t wanted) const
    {
        for (const synced_log &each : recorded->logs)
            if (each.number == wanted)
                return &each;
        return nullptr;
    }

    /* What is only torn is not told beside it. */
    void refuse()
    {
        if (findings->verdict != STORE_LOG_LOST)
            findings->words.clear();
        findings->verdict = STORE_LOG_LOST;
    }

    void tell_twin(const log_scan &scan)
    {
        refuse();
        say_twin(&findings->words, scan);
    }

    template <typename function> void lose(uint64_t log, function tell)
    {
        refuse();
        findings->has_loss = true;
        first_lost = std::min(first_lost, log);
        tell(&findings->words);
    }

    void tear(const log_scan &scan)
    {
        if (findings->verdict == STORE_LOG_LOST)
            return; /* that says more */
        findings->verdict = STORE_LOG_TORN;
        say_torn(&findings->words, scan);
    }

    log_findings *const findings;
    const synced_record *const recorded;
    uint64_t first_lost = UINT64_MAX;
};

} // namespace

static bool is_there(const std::vector<log_scan> &scans, uint64_t wanted)
{
    for (const log_scan &scan : scans)
        if (scan.number == wanted)
            return true;
    return false;
}

/* Without SYNCED it is not known whether a log is whole: that may be a loss. */
static status read_record(log_tracker *tracker, synced_record *recorded, log_findings *findings)
{
    status s = tracker->read(recorded);
    if (s.code != STATUS_NOT_FOUND && s.code != STATUS_DATA_LOSS)
        return s;
    findings->verdict = STORE_LOG_LOST;
    findings->has_loss = true;
    say(&findings->words, "%s, so that nobody can say whether the write-ahead log is whole",
        status_message(s));
    status_free(s);
    return status_ok();
}

status judge_logs(rocksdb::FileSystem *files, const std::string &directory,
                  const synced_record &recorded, log_findings *out)
{
    std::vector<log_scan> scans;
    rocksdb::IOStatus s = scan_logs(files, directory, recorded, &scans);
    if (!s.ok())
        return status_from(s);
    judge judge(out, &recorded);
    for (const synced_log &entry : recorded.logs)
        if (!is_there(scans, entry.number))
            judge.look_for(entry);
    for (const log_scan &scan : scans)
        judge.look_at(scan);
    judge.finish();
    return status_ok();
}

status check_logs(rocksdb::FileSystem *files, const std::string &directory, log_tracker *tracker,
                  bool has_record, log_findings *out)
{
    synced_record recorded;
    if (has_record)
        TRY(read_record(tracker, &recorded, out));
    return judge_logs(files, directory, recorded, out);
}
