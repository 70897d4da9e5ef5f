/* What RocksDB says of files and disks, in the server's words: which file, what could not be done
 * with it, and why. Its texts are built of pieces,
 *
 *     IO error: No space left on device: While appending to file: /d/000004.log: No space left …
 *     Corruption: block checksum mismatch: stored = 1, computed = 2 … in /d/000014.sst offset 39345
 *
 * and differ a little from release to release. So each is looked through for pieces that are known.
 * Of a text without any, what it is about is in our words, and the rest as it came. */
#include "store/internal.h"

#include <cctype>
#include <cstring>

namespace {

struct phrase {
    const char *theirs; /* what it begins with, after "While " */
    const char *ours;
};

const phrase doings[] = {
    {"open", "cannot open"},
    {"pread", "cannot read"},
    {"read", "cannot read"},
    {"append", "cannot write"},
    {"pwrite", "cannot write"},
    {"fsync", "cannot sync"},
    {"fdatasync", "cannot sync"},
    {"sync_file_range", "cannot sync"},
    {"fallocate", "cannot take room for"},
    {"ftruncate", "cannot cut"},
    {"close", "cannot close"},
    {"closing", "cannot close"},
    {"rename", "cannot rename"},
    {"link", "cannot link"},
    {"lock", "cannot lock"},
    {"unlink", "cannot remove"},
    {"rmdir", "cannot remove"},
    {"mkdir", "cannot make"},
    {"stat", "cannot look at"},
};

bool begins(const std::string &text, size_t at, const char *with)
{
    return text.compare(at, strlen(with), with) == 0;
}

const char *doing_at(const std::string &text, size_t at)
{
    for (const phrase &doing : doings)
        if (begins(text, at, doing.theirs))
            return doing.ours;
    return "cannot use";
}

/* A table that is missing is named by the suffix that such files once had. */
std::string present_name(const std::string &path)
{
    size_t dot = path.rfind(".ldb");
    return dot != std::string::npos && dot + 4 == path.size() ? path.substr(0, dot) + ".sst" : path;
}

/* Its log has that behind some of its errors. */
const char COUNTS[] = "Accumulated background error counts";

std::string without_counts(const std::string &reason)
{
    std::string words = reason.substr(0, reason.find(COUNTS));
    while (!words.empty() && strchr(", ", words.back()) != nullptr)
        words.pop_back();
    return words;
}

std::string reason_in_words(const std::string &reason)
{
    return reason == "No space left on device" ? "no space is left on its disk" : reason;
}

/* "While …: FILE: REASON". */
std::string failed_doing(const std::string &text)
{
    static const char WHILE[] = "hile "; /* the first letter may be a capital */
    size_t doing = text.rfind(WHILE);
    if (doing == std::string::npos)
        return "";
    doing += sizeof WHILE - 1;
    size_t file = text.find(": ", doing), reason = text.rfind(": ", text.find(COUNTS) - 1);
    if (file == std::string::npos || reason <= file)
        return "";
    file += 2;
    return std::string(doing_at(text, doing)) + " " +
           present_name(text.substr(file, reason - file)) + ": " +
           reason_in_words(without_counts(text.substr(reason + 2)));
}

/* The word around that place: a path, unless that has spaces. */
std::string word_around(const std::string &text, size_t at)
{
    size_t begin = at, end = at;
    while (begin > 0 && isspace(static_cast<unsigned char>(text[begin - 1])) == 0)
        begin--;
    while (end < text.size() && isspace(static_cast<unsigned char>(text[end])) == 0 &&
           strchr(",;:", text[end]) == nullptr)
        end++;
    if (end > at && text[end - 1] == '.') /* the sentence's */
        end--;
    return text.substr(begin, end - begin);
}

size_t last_of(const std::string &text, std::initializer_list<const char *> marks)
{
    size_t last = std::string::npos;
    for (const char *mark : marks) {
        size_t at = text.rfind(mark);
        if (at != std::string::npos && (last == std::string::npos || at > last))
            last = at;
    }
    return last;
}

/* RocksDB puts a path right behind these words, without a space. */
std::string apart(std::string text)
{
    static const char WORDS[] = "to be an sstable";
    size_t at = text.find(WORDS);
    return at == std::string::npos ? text : text.insert(at + sizeof WORDS - 1, " ");
}

/* The last file that is named; but where a manifest is named beside a table, the table is meant:
 * the manifest speaks of it. */
std::string damaged_file(const std::string &words)
{
    const std::string text = apart(words);
    size_t last = last_of(text, {".sst", ".ldb"});
    if (last == std::string::npos)
        last = last_of(text, {"MANIFEST-", ".log"});
    return last == std::string::npos ? "" : present_name(word_around(text, last));
}

std::string damage(const std::string &text)
{
    static const char OFFSET[] = " offset ";
    if (text.find("Corruption") == std::string::npos)
        return "";
    std::string file = damaged_file(text);
    if (file.empty())
        return "";
    size_t offset = text.find(OFFSET);
    bool is_missing = text.find("No such file or directory") != std::string::npos;
    if (offset == std::string::npos)
        return "the file " + file + (is_missing ? " is missing" : " is damaged");
    offset += sizeof OFFSET - 1;
    size_t end = text.find_first_not_of("0123456789", offset);
    return "the file " + file + " is damaged at byte " + text.substr(offset, end - offset);
}

/* By what it says of the code. */
const phrase kinds[] = {
    {"Corruption", "what is stored is damaged"},
    {"IO error", "the disk has failed"},
    {"Resource busy", "busy"},
    {"Operation aborted", "given up"},
    {"Shutdown in progress", "it is being closed"},
    {"Operation timed out", "out of time"},
    {"Result incomplete", "not finished"},
    {"Operation failed. Try again.", "to be tried again"},
    {"Not implemented", "not to be had"},
    {"Invalid argument", "called wrongly"},
    {"NotFound", "not found"},
};

/* Of a failure within another one that is told twice; and what leads to nothing at the end. */
std::string without_repetition(std::string detail)
{
    static const char AGAIN[] = "IO error: ";
    for (size_t at; (at = detail.find(AGAIN)) != std::string::npos;)
        detail.erase(at, sizeof AGAIN - 1);
    while (!detail.empty() && strchr(": ", detail.back()) != nullptr)
        detail.pop_back();
    return detail;
}

std::string kind_in_words(const std::string &text)
{
    for (const phrase &kind : kinds) {
        if (!begins(text, 0, kind.theirs))
            continue;
        std::string detail = without_repetition(text.substr(strlen(kind.theirs)));
        detail.erase(0, detail.find_first_not_of(": "));
        return detail.empty() ? kind.ours : std::string(kind.ours) + ": " + detail;
    }
    return without_repetition(text);
}

} // namespace

std::string words_of(const std::string &text)
{
    std::string words = damage(text);
    return words.empty() ? failed_doing(text) : words;
}

std::string words_of(const rocksdb::Status &s)
{
    std::string words = words_of(s.ToString());
    return words.empty() ? "store: " + kind_in_words(s.ToString()) : words;
}

/* --- its log --- */

namespace {

/* What stands in a line, and what that is. */
const store_line lines[] = {
    /* No news: before what such a line has besides. */
    {NO_OPTIONS_FILE, nullptr},
    {NO_REMOVAL, nullptr},
    {"without unique ID to verify", nullptr},
    /* A checkpoint keeps files while RocksDB lists them, which does the same. */
    {"File Deletions Disabled, but already disabled", nullptr},
    {"File Deletions Enable, but not really enabled", nullptr},
    /* What it does. */
    {"Stopping writes because", "the store lets nobody write until it has caught up"},
    {"Stalling writes because", "the store slows writes down until it has caught up"},
    {"background flush error", "a flush has failed, and is tried again"},
    {"background compaction error", "a compaction has failed, and is tried again"},
    {"Background IO error", "the disk has failed the store"},
    {"ErrorHandler: Set", "the disk has failed the store"},
    {"DB resume requested but", "the store cannot take writes again yet"},
    {"Failed to resume DB", "the store cannot take writes again yet"},
    {"Compaction error", "a compaction has failed"},
    {"Level-0 commit table", "a flush has failed"},
    {"DB::Open() failed", "the store cannot be opened"},
    {"Creating column family", "a keyspace cannot be made"},
    {"Dropping column family", "a keyspace cannot be dropped"},
    {"DropColumnFamily failed", "a keyspace cannot be dropped"},
    /* Of the log. */
    {"dropping", "what is behind this in a write-ahead log is not taken"},
    {"loss of synced WAL", "a write-ahead log cannot be read"},
    {"from the dropped column family", "a write-ahead log has rows of a keyspace that is gone"},
    {"Column family inconsistency", "a write-ahead log ends before what tables have"},
    {"WAL Sync error", "the write-ahead log cannot be synced"},
    {"Unable to Sync WAL", "the write-ahead log cannot be synced"},
    {"WAL flush error", "the write-ahead log cannot be written"},
    {"Failed to truncate log", "room of a write-ahead log cannot be given back"},
    {" WAL file", "no write-ahead log can be begun"},
    /* Of files. */
    {"version edit to MANIFEST", "the list of tables cannot be written"},
    {"Failed to delete manifest", "a former list of tables cannot be deleted"},
    {"Unable to load table properties", "a table file cannot be read"},
    {"Encountered error while reading data", "a table file cannot be read"},
    {"Error when seeking to", "a table file cannot be read"},
    {"Cannot find Properties block", "a table file cannot be read"},
    {"Tried to delete a non-existing file", "a file that is to be deleted is gone already"},
    {"] Failed to delete ", "a file that is not needed any more cannot be deleted"},
    {"Failed to sync dir", "which files there are cannot be made durable"},
};

const phrase stalls[] = {
    {"immutable memtables", "write buffers wait to be flushed"},
    {"level-0 files", "tables of level 0 wait to be compacted"},
    {"pending compaction bytes", "too much waits to be compacted"},
};

} // namespace

store_line line_in_words(const std::string &text)
{
    for (const store_line &line : lines)
        if (text.find(line.theirs) != std::string::npos)
            return line;
    return {"", words_of(text).empty() ? "RocksDB says" : "the store has trouble with a file"};
}

std::string cause_in_words(const std::string &text)
{
    for (const phrase &stall : stalls)
        if (text.find(stall.theirs) != std::string::npos)
            return stall.ours;
    return words_of(text);
}
