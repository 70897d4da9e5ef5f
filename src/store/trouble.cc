/* Why writes are refused, and what RocksDB's statuses mean to the rest of the server. */
#include "store/internal.h"

#define NO_SPACE  "no space left on the disk"
#define NO_MEMORY "there is no memory to put rows together that are to go into a table"

status status_from(const rocksdb::Status &s)
{
    if (s.ok())
        return status_ok();
    if (s.IsMemoryLimit())
        return status_make(STATUS_RESOURCE_EXHAUSTED, NO_MEMORY);
    status_code code = STATUS_INTERNAL;
    if (s.IsNoSpace())
        code = STATUS_RESOURCE_EXHAUSTED;
    else if (s.IsCorruption())
        code = STATUS_DATA_LOSS;
    else if (s.IsNotFound() || s.IsPathNotFound())
        code = STATUS_NOT_FOUND;
    else if (s.IsIOError() || s.IsBusy() || s.IsTryAgain() || s.IsShutdownInProgress())
        code = STATUS_UNAVAILABLE;
    return status_make(code, "%s", words_of(s).c_str());
}

trouble::trouble(const store_options *options)
    : log(options->log), listener(options->on_trouble), listener_context(options->trouble_context)
{
}

void trouble::tell(status_code code, const char *what)
{
    const log_field fields[] = {{"cause", log_field::LOG_FIELD_TEXT, bytes_of(what), 0},
                                {nullptr, log_field::LOG_FIELD_END, {nullptr, 0}, 0}};
    const char *message = "store writes again";
    if (code == STATUS_UNAVAILABLE)
        message = "store is fenced: no write until the server starts anew";
    else if (code != STATUS_OK)
        message = "store refuses writes";
    log_write(log, code == STATUS_OK ? LOG_INFO : LOG_ERROR, message, fields);
    if (listener != nullptr)
        listener(listener_context, code, what);
}

void trouble::fence(const std::string &what)
{
    {
        std::lock_guard<std::mutex> lock(mutex);
        if (fenced)
            return;
        why = what;
        fenced.store(true, std::memory_order_release);
    }
    tell(STATUS_UNAVAILABLE, what.c_str());
}

void trouble::seal(const std::string &what)
{
    {
        std::lock_guard<std::mutex> lock(mutex);
        why = what;
        sealed.store(true, std::memory_order_release);
    }
    tell(STATUS_FAILED_PRECONDITION, what.c_str());
}

void trouble::change(std::atomic<bool> *flag, bool is_so, const char *what, const char *over)
{
    if (flag->load(std::memory_order_relaxed) == is_so || flag->exchange(is_so) == is_so)
        return;
    if (is_so)
        tell(STATUS_RESOURCE_EXHAUSTED, what);
    else if (!is_fenced() && !log_full && !background_full && !no_memory)
        tell(STATUS_OK, over);
}

void trouble::log_is_full(bool is_full)
{
    change(&log_full, is_full, NO_SPACE, "there is space on the disk");
}

void trouble::background_is_full(bool is_full)
{
    change(&background_full, is_full, NO_SPACE, "there is space on the disk");
}

void trouble::lacks_memory(bool lacks)
{
    change(&no_memory, lacks, NO_MEMORY, "there is memory");
}

status trouble::health() const
{
    if (is_sealed()) {
        std::lock_guard<std::mutex> lock(mutex);
        return status_make(STATUS_FAILED_PRECONDITION, "nothing can be changed: %s", why.c_str());
    }
    if (is_fenced()) {
        std::lock_guard<std::mutex> lock(mutex);
        return status_make(STATUS_UNAVAILABLE, "the store takes no more writes: %s", why.c_str());
    }
    if (log_full || background_full)
        return status_make(STATUS_RESOURCE_EXHAUSTED, NO_SPACE);
    if (no_memory)
        return status_make(STATUS_RESOURCE_EXHAUSTED, NO_MEMORY);
    return status_ok();
}
