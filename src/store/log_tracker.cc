/* The log_tracker keeps SYNCED: see log_ends.h.
 *
 * The thread "synced" sleeps while no log is synced. The first sync wakes it, it lets 100 ms pass,
 * in which more may come, and writes what there is then. Threads of RocksDB's that delete a log
 * write, too, before they do.
 *
 * What fails is told in the log once and tried again with the next sync; until it works a start
 * would take for a torn write what is a loss, so nothing else depends on it. A log that cannot be
 * taken off the record stays on the disk. */
#include "store/log_ends.h"

#include <algorithm>
#include <chrono>

using rocksdb::IOStatus;

enum : size_t {
    MOST_TABLES = 24, /* that are named: a slot's worth of the longest names */
    MOST_FAMILIES = 1024,
};

const char NO_REMOVAL[] = "a salvage is not finished";

static const std::chrono::milliseconds PERIOD(100);

log_tracker::log_tracker(const struct log *log_) : log(log_) {}

log_tracker::~log_tracker()
{
    stop();
}

/* --- at a start --- */

void log_tracker::begin(rocksdb::FileSystem *files, const std::string &directory_)
{
    directory = directory_;
    file.set_place(files, directory);
}

void log_tracker::know(const synced_record &record)
{
    std::lock_guard<std::mutex> lock(mutex);
    for (const synced_log &each : record.logs)
        logs.push_back(
            std::make_shared<tracked_log>(each.number, each.length, each.is_ended,
                                          inode_of(directory + "/" + log_name(each.number))));
    former_tables = record.tables;
    manifest = record.manifest;
    manifest_length = record.manifest_length;
    written_us = record.written_us;
    if (!record.logs.empty())
        newest = record.logs.back();
}

IOStatus log_tracker::start_recording()
{
    {
        std::lock_guard<std::mutex> lock(writing);
        is_recording = true;
    }
    return record();
}

void log_tracker::start_thread()
{
    thread = std::thread([this] { run(); });
    pthread_setname_np(thread.native_handle(), "synced");
}

/* --- the thread --- */

void log_tracker::wake()
{
    std::lock_guard<std::mutex> lock(mutex);
    has_news = true;
    changed.notify_all();
}

void log_tracker::run()
{
    std::unique_lock<std::mutex> lock(mutex);
    while (!is_stopping) {
        changed.wait(lock, [this] { return has_news || is_stopping; });
        if (changed.wait_for(lock, PERIOD, [this] { return is_stopping; }))
            return; /* and stop() writes */
        has_news = false;
        lock.unlock();
        record_news();
        lock.lock();
    }
}

IOStatus log_tracker::try_to_record()
{
    try {
        return record();
    } catch (const std::exception &e) {
        return IOStatus::IOError(e.what());
    }
}

static void tell_failure(const struct log *log, const IOStatus &s)
{
    std::string cause = words_of(s);
    const log_field fields[] = {{"cause", log_field::LOG_FIELD_TEXT, bytes_of(cause.c_str()), 0},
                                {nullptr, log_field::LOG_FIELD_END, {nullptr, 0}, 0}};
    log_write(log, LOG_WARN, "how far the log is synced cannot be recorded", fields);
}

void log_tracker::record_news()
{
    IOStatus s = try_to_record();
    if (failed.exchange(!s.ok()) || s.ok())
        return;
    tell_failure(log, s);
}

void log_tracker::abandon()
{
    std::lock_guard<std::mutex> lock(writing);
    is_recording = false;
    abandoned.store(true, std::memory_order_release);
}

void log_tracker::stop()
{
    {
        std::lock_guard<std::mutex> lock(mutex);
        is_stopping = true;
        changed.notify_all();
    }
    if (thread.joinable())
        thread.join();
    {
        std::lock_guard<std::mutex> lock(writing);
        if (!is_recording)
            return;
    }
    record_news();
    std::lock_guard<std::mutex> lock(writing);
    is_recording = false;
}

/* --- what is recorded --- */

bool log_tracker::records()
{
    std::lock_guard<std::mutex> lock(writing);
    return is_recording;
}

IOStatus log_tracker::record_afresh()
{
    std::lock_guard<std::mutex> lock(writing);
    if (!is_recording)
        return IOStatus::OK();
    synced_record present = gather();
    sync_copy();
    return file.write_afresh(present);
}

IOStatus log_tracker::record()
{
    std::lock_guard<std::mutex> lock(writing);
    if (!is_recording)
        return IOStatus::OK();
    synced_record present = gather();
    sync_copy(); /* what was gathered of the manifest is in it by now */
    return file.write(present);
}

void log_tracker::sync_copy()
{
    std::shared_ptr<manifest_copy> copy;
    {
        std::lock_guard<std::mutex> lock(mutex);
        copy = newest_manifest;
    }
    if (copy != nullptr)
        copy->sync();
}

static uint64_t recorded_length(const tracked_log &each)
{
    return each.is_named.load(std::memory_order_acquire) ? each.synced.load() : 0;
}

synced_record log_tracker::gather()
{
    synced_record record;
    std::lock_guard<std::mutex> lock(mutex);
    for (const auto &each : logs) {
        uint64_t length = recorded_length(*each);
        if (length > 0)
            record.logs.push_back({each->number, length, each->is_ended});
    }
    gather_tables(&record);
    gather_families(&record, true);
    gather_families(&record, false);
    if (newest_manifest != nullptr && newest_manifest->number == manifest)
        manifest_length = newest_manifest->synced.load(std::memory_order_acquire);
    record.manifest = manifest;
    record.manifest_length = manifest_length;
    gather_time(&record);
    return record;
}

/* Takes the time of the last commit; a record for another reason, such as an orderly stop, is none.
 * Under the mutex. */
void log_tracker::gather_time(synced_record *record)
{
    if (!record->logs.empty()) {
        const synced_log &last = record->logs.back();
        if (last.number != newest.number || last.length > newest.length)
            written_us = clock_wall_us(log->clock);
        newest = last;
    }
    record->written_us = written_us;
}

/* Adds the table if there may be something of it in a log that is there. */
static void add_table(synced_record *record, const logged_table &table)
{
    if (record->logs.empty() || table.last_log < record->logs.front().number || table.name.empty())
        return;
    for (logged_table &each : record->tables) {
        if (each.keyspace_id == table.keyspace_id) {
            each.last_log = std::max(each.last_log, table.last_log);
            return;
        }
    }
    if (record->tables.size() < MOST_TABLES)
        record->tables.push_back(table);
    else
        record->unnamed_tables++;
}

/* Under the mutex. A write that is under way while a log is made may count for the log before. */
void log_tracker::gather_tables(synced_record *record)
{
    uint64_t newest = logs.empty() ? 0 : logs.back()->number;
    size_t kept = 0;
    for (size_t i = 0; i < marks.size(); i++) {
        std::shared_ptr<write_mark> mark = marks[i].lock();
        if (mark == nullptr)
            continue;
        if (mark->is_set.exchange(false, std::memory_order_relaxed))
            mark->last_log = newest;
        if (mark->last_log > 0)
            add_table(record, {mark->keyspace.id, mark->last_log, mark->name});
        std::swap(marks[kept++], marks[i]);
    }
    marks.resize(kept);
    for (const logged_table &table : former_tables)
        add_table(record, table);
}

/* Families that this run has written to come first. Under the mutex. */
void log_tracker::gather_families(synced_record *record, bool written)
{
    for (const auto &each : marks) {
        std::shared_ptr<write_mark> mark = each.lock();
        if (mark != nullptr && mark->family != 0 && (mark->last_log > 0) == written &&
            record->families.size() < MOST_FAMILIES)
            record->families.push_back({mark->family, mark->keyspace});
    }
}

std::shared_ptr<write_mark> log_tracker::add_mark(const keyspace_identity &keyspace)
{
    auto mark = std::make_shared<write_mark>(keyspace);
    std::lock_guard<std::mutex> lock(mutex);
    marks.push_back(mark);
    return mark;
}

void log_tracker::name_mark(write_mark *mark, const char *name)
{
    std::lock_guard<std::mutex> lock(mutex);
    mark->name = name;
}

void log_tracker::number_mark(write_mark *mark, uint32_t family)
{
    std::lock_guard<std::mutex> lock(mutex);
    mark->family = family;
}

/* --- logs that come and go --- */

std::shared_ptr<tracked_log> log_tracker::log_made(const std::string &name)
{
    uint64_t number = 0;
    parse_log_name(name, &number);
    auto made = std::make_shared<tracked_log>(number, 0, false, inode_of(directory + "/" + name));
    std::lock_guard<std::mutex> lock(mutex);
    logs.push_back(made);
    return made;
}

void log_tracker::manifest_made(std::shared_ptr<manifest_copy> made)
{
    std::lock_guard<std::mutex> lock(mutex);
    newest_manifest = std::move(made);
}

/* Recorded before the former one is deleted. If it cannot be, it is next time. */
void log_tracker::manifest_named(uint64_t number)
{
    {
        std::lock_guard<std::mutex> lock(mutex);
        manifest = number;
    }
    try_to_record().PermitUncheckedError();
}

/* --- what there should be --- */

std::vector<std::shared_ptr<tracked_log>> log_tracker::known_logs()
{
    std::lock_guard<std::mutex> lock(mutex);
    return logs;
}

bool log_tracker::knows(uint64_t number)
{
    std::lock_guard<std::mutex> lock(mutex);
    return std::any_of(logs.begin(), logs.end(),
                       [number](const auto &each) { return each->number == number; });
}

uint64_t log_tracker::named_manifest()
{
    std::lock_guard<std::mutex> lock(mutex);
    return manifest;
}

std::shared_ptr<manifest_copy> log_tracker::kept_manifest()
{
    std::lock_guard<std::mutex> lock(mutex);
    bool is_named = newest_manifest != nullptr && newest_manifest->number == manifest;
    return is_named ? newest_manifest : nullptr;
}

bool log_tracker::record_is_gone()
{
    std::unique_lock<std::mutex> lock(writing, std::try_to_lock);
    return lock.owns_lock() && is_recording && file.is_gone();
}

/* --- their names --- */

/* The names of all logs before the one that it returns are about to be durable. */
uint64_t log_tracker::names_begin()
{
    std::lock_guard<std::mutex> lock(mutex);
    return logs.empty() ? 0 : logs.back()->number + 1;
}

void log_tracker::names_synced(uint64_t begun)
{
    std::lock_guard<std::mutex> lock(mutex);
    for (const auto &each : logs) {
        if (each->number < begun)
            each->is_named.store(true, std::memory_order_release);
    }
}

const log_scan *log_tracker::find_salvaged(const std::string &name) const
{
    uint64_t number;
    auto found = parse_log_name(name, &number) ? salvaged.find(number) : salvaged.end();
    return found == salvaged.end() ? nullptr : &found->second;
}

/* Whether it was known. */
bool log_tracker::forget(uint64_t number, std::shared_ptr<tracked_log> *forgotten)
{
    std::lock_guard<std::mutex> lock(mutex);
    for (size_t i = 0; i < logs.size(); i++) {
        if (logs[i]->number == number) {
            *forgotten = logs[i];
            logs.erase(logs.begin() + static_cast<ptrdiff_t>(i));
            return true;
        }
    }
    return false;
}

IOStatus log_tracker::log_goes(const std::string &name)
{
    uint64_t number;
    std::shared_ptr<tracked_log> log;
    if (!parse_log_name(name, &number))
        return IOStatus::OK();
    if (!records())
        return IOStatus::Busy(NO_REMOVAL);
    if (!forget(number, &log) || recorded_length(*log) == 0)
        return IOStatus::OK();
    IOStatus s = try_to_record();
    if (s.ok())
        return s;
    std::lock_guard<std::mutex> lock(mutex);
    logs.push_back(log);
    std::sort(logs.begin(), logs.end(),
              [](const auto &a, const auto &b) { return a->number < b->number; });
    return s;
}
