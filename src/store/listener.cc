/* What RocksDB tells us: background errors, bytes written, tables that come, and its own log. */
#include "store/keyspaces.h"

#include "rocksdb/listener.h"

#include <cstdarg>
#include <cstring>

namespace {

/* Background errors, by RocksDB's severity: a soft one stops compactions for a while; a hard one
 * stops writes, and RocksDB resumes when it can; after a fatal one it never writes again. Of a
 * compaction that could not read its tables RocksDB would make a fatal one: it is told that there
 * was none, and tries again, a second later, until what is damaged has stand-ins (damage.cc). Of a
 * flush that lacked memory to put a row together, too: it is told that this is a hard one, of which
 * there is a way back (store_look_for_room). */
class listener final : public rocksdb::EventListener {
  public:
    explicit listener(struct store *store)
        : trouble(&store->trouble), counters(&store->counters), levels0(&store->levels0),
          large(&store->large), full(&store->full), damage(&store->damage)
    {
    }

    const char *Name() const override { return "trestle.listener"; }

    void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status *error) override
    {
        large->end();
        levels0->job_failed();
        if (is_flush(reason) && is_lack_of_memory(*error))
            *error = rocksdb::Status(rocksdb::Status::MemoryLimit("a row is to be put together"),
                                     rocksdb::Status::Severity::kHardError);
        if (error->IsMemoryLimit())
            trouble->lacks_memory(true);
        else if (reason == rocksdb::BackgroundErrorReason::kCompaction &&
                 (is_lack_of_memory(*error) || is_damage(*error)))
            *error = rocksdb::Status::OK(); /* OnCompactionCompleted sees to it */
        else if (error->severity() >= rocksdb::Status::Severity::kFatalError)
            trouble->fence(words_of(*error));
        else if (error->severity() >= rocksdb::Status::Severity::kHardError)
            trouble->background_is_full(true);
    }

    void OnErrorRecoveryEnd(const rocksdb::BackgroundErrorRecoveryInfo &info) override
    {
        if (!info.new_bg_error.ok())
            return;
        trouble->background_is_full(false);
        trouble->lacks_memory(false);
    }

    void OnTableFileCreated(const rocksdb::TableFileCreationInfo &info) override
    {
        bool is_of_job = info.reason == rocksdb::TableFileCreationReason::kFlush ||
                         info.reason == rocksdb::TableFileCreationReason::kCompaction;
        if (info.reason == rocksdb::TableFileCreationReason::kFlush)
            large->end();
        if (is_of_job && info.status.ok())
            levels0->table_made(info.cf_name, info.file_path,
                                info.table_properties.num_range_deletions != 0);
    }

    void OnTableFileDeleted(const rocksdb::TableFileDeletionInfo &info) override
    {
        levels0->table_finished(info.file_path);
    }

    /* Not OnFlushBegin: that is told, and no end of it, also of a flush for which another one has
     * taken all that there was (listener_test.cc). */
    void OnTableFileCreationStarted(const rocksdb::TableFileCreationBriefInfo &info) override
    {
        if (info.reason == rocksdb::TableFileCreationReason::kFlush)
            begin_flush(info.cf_name);
    }

    void OnCompactionBegin(rocksdb::DB *, const rocksdb::CompactionJobInfo &info) override
    {
        large->compaction_begins(info);
        forget_reads();
        forget_folds();
        levels0->compaction_begun(info.output_level);
    }

    /* Also by a thread other than that which made the table. */
    void OnFlushCompleted(rocksdb::DB *, const rocksdb::FlushJobInfo &info) override
    {
        levels0->table_finished(info.file_path);
        counters->bytes_written += info.table_properties.data_size;
        counters->flushed_bytes +=
            info.table_properties.raw_key_size + info.table_properties.raw_value_size;
        counters->flushes++;
        full->flushed();
    }

    void OnCompactionCompleted(rocksdb::DB *, const rocksdb::CompactionJobInfo &info) override
    {
        large->end();
        levels0->compaction_done(info.cf_name);
        if (is_lack_of_memory(info.status))
            counters->hungry++;
        else if (is_damage(info.status))
            damage->note_failed_compaction(id_in_name(info.cf_name), info.status.ToString());
        counters->bytes_written += info.stats.total_output_bytes;
        counters->compaction_written_bytes += info.stats.total_output_bytes;
        counters->compaction_read_bytes += info.stats.total_input_bytes;
        counters->compaction_us += info.stats.elapsed_micros;
        counters->compactions++;
    }

    void OnStallConditionsChanged(const rocksdb::WriteStallInfo &info) override
    {
        if (info.condition.cur == rocksdb::WriteStallCondition::kDelayed)
            counters->slowdowns++;
        else if (info.condition.cur == rocksdb::WriteStallCondition::kStopped)
            counters->stops++;
    }

  private:
    static bool is_flush(rocksdb::BackgroundErrorReason reason)
    {
        return reason == rocksdb::BackgroundErrorReason::kFlush ||
               reason == rocksdb::BackgroundErrorReason::kFlushNoWAL;
    }

    void begin_flush(const std::string &name)
    {
        forget_folds();
        large->flush_begins(name);
    }

    /* Whether what the job read was at fault, not what it wrote on the same thread. */
    static bool is_damage(const rocksdb::Status &s)
    {
        return s.IsCorruption() || (s.IsIOError() && thread_could_not_read());
    }

    class trouble *const trouble;
    store_counters *const counters;
    level0_list *const levels0;
    large_work *const large;
    full_buffers *const full;
    damage_watch *const damage;
};

/* RocksDB's warnings and errors in the server's own log; no LOG files in the directory. */
class logger final : public rocksdb::Logger {
  public:
    explicit logger(const struct log *log) : Logger(rocksdb::InfoLogLevel::WARN_LEVEL), target(log)
    {
    }

    void Logv(const char *, va_list) override {} /* headers: a dump of all options */

    void Logv(const rocksdb::InfoLogLevel level, const char *format, va_list arguments) override
    {
        if (level < GetInfoLogLevel() || level >= rocksdb::InfoLogLevel::HEADER_LEVEL)
            return;
        char text[1024];
        vsnprintf(text, sizeof text, format, arguments);
        text[strcspn(text, "\n")] = '\0';
        tell(level >= rocksdb::InfoLogLevel::ERROR_LEVEL ? LOG_ERROR : LOG_WARN, text);
    }

  private:
    /* RocksDB calls this, so nothing may be thrown. Its own words stand beside ours. */
    void tell(enum log_level level, const char *text)
    try {
        const store_line line = line_in_words(text);
        const std::string cause = cause_in_words(text);
        const log_field fields[] = {
            {"cause", log_field::LOG_FIELD_TEXT, bytes_of(cause.c_str()), 0},
            {"rocksdb", log_field::LOG_FIELD_TEXT, bytes_of(text), 0},
            {nullptr, log_field::LOG_FIELD_END, {nullptr, 0}, 0}};
        if (line.ours != nullptr)
            log_write(target, level, line.ours, cause.empty() ? fields + 1 : fields);
    } catch (const std::exception &) {
        const log_field none = {nullptr, log_field::LOG_FIELD_END, {nullptr, 0}, 0};
        log_write(target, level, text, &none);
    }

    const struct log *const target;
};

} // namespace

std::shared_ptr<rocksdb::EventListener> make_listener(struct store *store)
{
    return std::make_shared<listener>(store);
}

std::shared_ptr<rocksdb::Logger> make_logger(const struct log *log)
{
    return std::make_shared<logger>(log);
}
