/* What a directory without a manifest has, and a store made of it: see old_data.h. */
#include "store/old_data.h"
#include "store/keyspaces.h"

#include "rocksdb/write_batch.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

using rocksdb::FileOptions;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

const char OLD_DATA_DIRECTORY[] = "old-data";

/* Beyond all that a catalog may name: rows must not come into a table that is not theirs. */
enum : uint64_t { FIRST_NAMELESS = uint64_t(1) << 32 };

static void say(old_data *found, const std::string &words)
{
    found->words += (found->words.empty() ? "" : "; ") + words;
}

static std::string table_name(uint64_t number)
{
    char name[32];
    snprintf(name, sizeof name, "%06llu.sst", (unsigned long long)number);
    return name;
}

/* --- families --- */

namespace {

/* Finds families by their numbers, and makes those that are not known yet. */
class family_list {
  public:
    explicit family_list(old_data *found_) : found(found_) {}

    found_family *add(uint32_t number, const keyspace_identity &keyspace)
    {
        auto at = std::lower_bound(
            found->families.begin(), found->families.end(), number,
            [](const found_family &each, uint32_t wanted) { return each.number < wanted; });
        if (at != found->families.end() && at->number == number)
            return &*at;
        found_family made;
        made.number = number;
        made.keyspace = keyspace;
        next_nameless = std::max(next_nameless, keyspace.id + 1);
        return &*found->families.insert(at, made);
    }

    bool knows(uint32_t number) const
    {
        return std::any_of(found->families.begin(), found->families.end(),
                           [&](const found_family &each) { return each.number == number; });
    }

    bool has_keyspace(uint64_t id) const
    {
        return std::any_of(found->families.begin(), found->families.end(),
                           [&](const found_family &each) { return each.keyspace.id == id; });
    }

    /* Adds a family of a keyspace of unknown number: a new one. */
    found_family *add_nameless(uint32_t number)
    {
        return add(number, {next_nameless, KEYSPACE_ROWS});
    }
    uint32_t next_number() const
    {
        return found->families.empty() ? 1 : found->families.back().number + 1;
    }

  private:
    old_data *const found;
    uint64_t next_nameless = FIRST_NAMELESS;
};

/* Log and family: the sequence number of the first record that writes to it there. */
using logged_begins = std::map<std::pair<uint64_t, uint32_t>, uint64_t>;

/* The numbers of the families that a batch writes to. */
class family_collector final : public rocksdb::WriteBatch::Handler {
  public:
    rocksdb::Status note(uint32_t family)
    {
        numbers.insert(family);
        return rocksdb::Status::OK();
    }
    rocksdb::Status PutCF(uint32_t family, const Slice &, const Slice &) override
    {
        return note(family);
    }
    rocksdb::Status DeleteCF(uint32_t family, const Slice &) override { return note(family); }
    rocksdb::Status MergeCF(uint32_t family, const Slice &, const Slice &) override
    {
        return note(family);
    }
    rocksdb::Status DeleteRangeCF(uint32_t family, const Slice &, const Slice &) override
    {
        return note(family);
    }
    void LogData(const Slice &) override {}

    std::set<uint32_t> numbers;
};

} // namespace

/* --- tables --- */

static uint64_t last_sequence(const found_table &table)
{
    uint64_t last = table.summary.greatest_sequence;
    for (const deleted_range &each : table.summary.deleted)
        last = std::max(last, each.sequence);
    return last;
}

static status list_tables(rocksdb::FileSystem *files, const std::string &directory,
                          std::vector<uint64_t> *numbers)
{
    std::vector<std::string> names;
    IOStatus s = files->GetChildren(directory, IOOptions(), &names, nullptr);
    for (const std::string &name : names) {
        uint64_t number = strtoull(name.c_str(), nullptr, 10);
        if (number > 0 && name == table_name(number))
            numbers->push_back(number);
    }
    std::sort(numbers->begin(), numbers->end());
    return status_from(s);
}

/* False: it cannot be used, and that is said. */
static status read_table(rocksdb::FileSystem *files, const std::string &directory,
                         found_table *table, old_data *found, bool *is_usable)
{
    table_findings findings;
    std::string name = table_name(table->number);
    std::string path = directory + "/" + name;
    TRY(status_from(files->GetFileSize(path, IOOptions(), &table->size, nullptr)));
    TRY(summarize_table(files, path, table->size, &table->summary, &findings));
    *is_usable =
        findings.whole.empty() && (table->summary.has_keys || !table->summary.deleted.empty());
    if (!findings.whole.empty())
        found->unfinished = std::max(found->unfinished, table->number);
    if (!findings.whole.empty())
        say(found, "what the table file " + name + " has is missing: " + findings.whole);
    if (!findings.blocks.empty())
        say(found, "the table file " + name + " is damaged");
    return status_ok();
}

/* Tables that were taken in say of no family that they are its; those that were taken in together
 * have numbers one after the other, and keys as well. */
static void adopt(const std::vector<found_table> &strangers, family_list *families, old_data *found)
{
    found_family *at = nullptr;
    const found_table *before = nullptr;
    size_t made = 0;
    for (const found_table &table : strangers) {
        bool goes_on = before != nullptr && before->number + 1 == table.number &&
                       before->summary.largest < table.summary.smallest;
        if (!goes_on) {
            at = families->add_nameless(families->next_number());
            made++;
        }
        at->tables.push_back(table);
        before = &table;
    }
    if (made > 0)
        say(found, "the tables of " + std::to_string(made) +
                       " keyspaces do not say of which: they were restored from a backup");
}

static status read_tables(rocksdb::FileSystem *files, const std::string &directory,
                          family_list *families, std::vector<found_table> *strangers,
                          old_data *found)
{
    std::vector<uint64_t> numbers;
    TRY(list_tables(files, directory, &numbers));
    for (uint64_t number : numbers) {
        found_table table;
        bool is_usable = false;
        keyspace_identity keyspace = {};
        table.number = number;
        TRY(read_table(files, directory, &table, found, &is_usable));
        if (!is_usable)
            continue;
        if (table.summary.has_family && parse_keyspace_name(table.summary.family_name, &keyspace) &&
            keyspace.id != 0)
            families->add(table.summary.family, keyspace)->tables.push_back(std::move(table));
        else
            strangers->push_back(std::move(table));
    }
    return status_ok();
}

/* --- logs --- */

/* A record begins with the sequence number of its first entry. */
static void note_record(const std::string &record, uint64_t log, logged_begins *begins)
{
    family_collector collector;
    uint64_t sequence = 0;
    if (record.size() < sizeof sequence)
        return;
    memcpy(&sequence, record.data(), sizeof sequence);
    rocksdb::WriteBatch(record).Iterate(&collector).PermitUncheckedError();
    for (uint32_t family : collector.numbers)
        begins->emplace(std::make_pair(log, family), sequence);
}

static status read_logs(rocksdb::FileSystem *files, const std::string &directory,
                        const synced_record &recorded, logged_begins *begins)
{
    std::vector<log_scan> logs;
    TRY(status_from(scan_logs(files, directory, recorded, &logs)));
    for (const log_scan &log : logs) {
        log_scan again = bounds_of(log);
        TRY(status_from(
            scan_log(files, directory + "/" + log_name(log.number), &again,
                     [&](const std::string &record) { note_record(record, log.number, begins); })));
    }
    return status_ok();
}

/* A family's write buffer has whole logs, so tables that have some of a log have all of it. */
static void skip_covered(const logged_begins &begins, old_data *found)
{
    for (found_family &family : found->families) {
        uint64_t last = 0;
        for (const found_table &table : family.tables)
            last = std::max(last, last_sequence(table));
        for (const auto &[place, sequence] : begins)
            if (place.second == family.number && sequence <= last)
                family.log_number = std::max(family.log_number, place.first + 1);
    }
}

/* Rows of a family that neither a table nor SYNCED names are kept, in a keyspace of their own. But
 * that the first keyspace that is made has the number 1 is a habit of the layers above. */
static status add_logged(rocksdb::FileSystem *files, const std::string &directory,
                         const synced_record &recorded, family_list *families, old_data *found)
{
    logged_begins begins;
    std::set<uint32_t> numbers;
    size_t nameless = 0;
    TRY(read_logs(files, directory, recorded, &begins));
    for (const auto &each : begins)
        numbers.insert(each.first.second);
    for (const logged_family &each : recorded.families) {
        found->last_family = std::max(found->last_family, each.family);
        if (numbers.count(each.family) > 0)
            families->add(each.family, each.keyspace);
    }
    for (uint32_t number : numbers) {
        if (number == 0 || families->knows(number))
            continue;
        bool is_first = number == 1 && !families->has_keyspace(1);
        is_first ? families->add(1, {1, KEYSPACE_ROWS}) : families->add_nameless(number);
        nameless += is_first ? 0 : 1;
    }
    skip_covered(begins, found);
    if (nameless > 0)
        say(found, "the logs do not say of which keyspace the rows of " + std::to_string(nameless) +
                       " are");
    return status_ok();
}

/* --- all of it --- */

static void note_files(rocksdb::FileSystem *files, const std::string &directory, old_data *found)
{
    std::vector<std::string> names;
    files->GetChildren(directory, IOOptions(), &names, nullptr).PermitUncheckedError();
    for (const std::string &name : names) {
        size_t digits = name.find_first_of("0123456789");
        if (digits != std::string::npos)
            found->last_file =
                std::max<uint64_t>(found->last_file, strtoull(name.c_str() + digits, nullptr, 10));
    }
}

static void leave_out(old_data *found)
{
    std::vector<uint64_t> numbers;
    std::string names;
    for (found_family &family : found->families)
        leave_out_replaced(&family, found->unfinished, &numbers);
    for (uint64_t number : numbers)
        names += " " + table_name(number);
    if (!numbers.empty())
        say(found, "left out, since compactions had replaced or not finished them:" + names);
}

static void note_sequences(old_data *found)
{
    for (const found_family &family : found->families)
        for (const found_table &table : family.tables)
            found->last_sequence = std::max(found->last_sequence, last_sequence(table));
}

status look_for_old_data(rocksdb::FileSystem *files, const std::string &directory,
                         const synced_record &recorded, old_data *out)
{
    family_list families(out);
    std::vector<found_table> strangers;
    TRY(read_tables(files, directory, &families, &strangers, out));
    TRY(add_logged(files, directory, recorded, &families, out));
    adopt(strangers, &families, out);
    note_files(files, directory, out);
    note_sequences(out);
    leave_out(out);
    return status_ok();
}

/* --- the directory --- */

/* Whole: what may be left of it is judged where it is opened. RocksDB cuts logs that it opens, so
 * they are not linked. */
static IOStatus copy_log(rocksdb::FileSystem *files, const std::string &from, const std::string &to)
{
    uint64_t size = 0;
    IOStatus s = files->GetFileSize(from, IOOptions(), &size, nullptr);
    return s.ok() ? copy_first_bytes(files, from, to, size, true) : s;
}

static IOStatus take_files(rocksdb::FileSystem *files, const std::string &from,
                           const std::string &to, const old_data &found)
{
    IOStatus s;
    for (const found_family &family : found.families)
        for (const found_table &table : family.tables)
            if (s.ok())
                s = files->LinkFile(from + "/" + table_name(table.number),
                                    to + "/" + table_name(table.number), IOOptions(), nullptr);
    std::vector<std::string> names;
    uint64_t number;
    if (s.ok())
        s = files->GetChildren(from, IOOptions(), &names, nullptr);
    for (const std::string &name : names)
        if (s.ok() && parse_log_name(name, &number))
            s = copy_log(files, from + "/" + name, to + "/" + name);
    return s;
}

/* Writes SYNCED: logs are as known, since they are copies; of the manifest nothing is known. */
static IOStatus write_synced(rocksdb::FileSystem *files, const std::string &directory,
                             const synced_record &recorded)
{
    synced_record record = recorded;
    synced_file file;
    record.manifest = record.manifest_length = 0;
    record.families.clear(); /* they get other keyspaces where their own are not known */
    file.set_place(files, directory);
    return file.write(record);
}

status make_old_data(rocksdb::FileSystem *files, const std::string &directory,
                     const synced_record &recorded, bool has_record, const old_data &found)
{
    std::string made = directory + "/" + OLD_DATA_DIRECTORY;
    TRY(remove_flat_directory(files, made));
    IOStatus s = files->CreateDir(made, IOOptions(), nullptr);
    if (s.ok())
        s = take_files(files, directory, made, found);
    if (s.ok() && has_record)
        s = write_synced(files, made, recorded);
    if (s.ok())
        s = write_manifest(files, made, found.last_file + 1, found);
    if (s.ok())
        s = sync_directory(files, made);
    TRY(status_from(s));
    return directory_mark(files, made);
}
