/* The file SYNCED: see log_ends.h; byte for byte in docs/internals/format.md.
 *
 * Two slots of equal size, each whole or worth nothing (checksum); the greater sequence number is
 * the record that holds. The one that does not is overwritten next, in place. A record that is too
 * large for a slot makes a new file with larger ones, put in the old one's place by its name. */
#include "store/log_ends.h"

#include "base/crc32c.h"
#include "store/files.h"

#include <algorithm>

using rocksdb::FileOptions;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

enum : size_t { LEAST_SLOT = 8 << 10, SUM = 4 /* bytes */ };

static const char MAGIC[] = "trestleS";
static const char FAMILIES[] = "trestleF"; /* behind what former programs read */

/* --- a slot --- */

static void append_number(std::string *out, uint64_t number, unsigned bytes)
{
    while (bytes-- > 0)
        out->push_back(static_cast<char>(number >> 8 * bytes));
}

/* Of what is in the slot from that byte on. */
static void append_sum(std::string *slot, size_t from)
{
    append_number(slot, crc32c_of(bytes_make(slot->data() + from, slot->size() - from)), SUM);
}

/* The kind is the upper bit of the number. */
constexpr uint64_t OF_KIND_LOG = uint64_t(1) << 63;

static uint64_t encode_keyspace(const keyspace_identity &keyspace)
{
    return keyspace.id | (keyspace.kind == KEYSPACE_LOG ? OF_KIND_LOG : 0);
}

static keyspace_identity decode_keyspace(uint64_t number)
{
    return {number & ~OF_KIND_LOG, number & OF_KIND_LOG ? KEYSPACE_LOG : KEYSPACE_ROWS};
}

static void append_families(std::string *slot, const synced_record &record)
{
    size_t from = slot->size();
    slot->append(FAMILIES, sizeof FAMILIES - 1);
    append_number(slot, record.families.size(), 4);
    for (const logged_family &each : record.families) {
        append_number(slot, each.family, 4);
        append_number(slot, encode_keyspace(each.keyspace), 8);
    }
    append_sum(slot, from);
}

static void encode(const synced_record &record, uint64_t sequence, std::string *out)
{
    out->assign(MAGIC, sizeof MAGIC - 1);
    append_number(out, sequence, 8);
    append_number(out, static_cast<uint64_t>(record.written_us), 8);
    append_number(out, record.logs.size(), 4);
    append_number(out, record.tables.size(), 4);
    append_number(out, record.unnamed_tables, 8);
    append_number(out, record.manifest, 8);
    append_number(out, record.manifest_length, 8);
    for (const synced_log &log : record.logs) {
        append_number(out, log.number, 8);
        append_number(out, log.length, 8);
        append_number(out, log.is_ended ? 1 : 0, 1);
    }
    for (const logged_table &table : record.tables) {
        append_number(out, table.keyspace_id, 8);
        append_number(out, table.last_log, 8);
        append_number(out, table.name.size(), 2);
        out->append(table.name);
    }
    append_sum(out, 0);
    append_families(out, record);
}

namespace {

/* What is read past the end is 0, and `is_short` from then on. */
class slot_reader {
  public:
    explicit slot_reader(const Slice &slot_) : slot(slot_) {}

    uint64_t number(unsigned bytes)
    {
        uint64_t value = 0;
        for (char c : text(bytes))
            value = value << 8 | static_cast<uint8_t>(c);
        return value;
    }

    std::string text(size_t bytes)
    {
        if (slot.size() - at < bytes) {
            is_short = true;
            return "";
        }
        at += bytes;
        return std::string(slot.data() + at - bytes, bytes);
    }

    size_t left() const { return slot.size() - at; }
    size_t done() const { return at; }
    bool is_short = false;

  private:
    const Slice slot;
    size_t at = 0;
};

} // namespace

static void decode_logs(slot_reader *reader, uint64_t count, synced_record *out)
{
    for (uint64_t i = 0; i < count && !reader->is_short; i++) {
        synced_log log;
        log.number = reader->number(8);
        log.length = reader->number(8);
        log.is_ended = reader->number(1) != 0;
        out->logs.push_back(log);
    }
}

static void decode_tables(slot_reader *reader, uint64_t count, synced_record *out)
{
    for (uint64_t i = 0; i < count && !reader->is_short; i++) {
        logged_table table;
        table.keyspace_id = reader->number(8);
        table.last_log = reader->number(8);
        table.name = reader->text(reader->number(2));
        out->tables.push_back(table);
    }
}

/* The sum of what has been read since that byte comes next. */
static bool is_summed(const Slice &slot, size_t from, slot_reader *reader)
{
    uint32_t sum = crc32c_of(bytes_make(slot.data() + from, reader->done() - from));
    return reader->number(SUM) == sum && !reader->is_short;
}

/* A former program writes none. What it has left behind its own record is as good: a family never
 * becomes another keyspace's. */
static void decode_families(const Slice &slot, slot_reader *reader, synced_record *out)
{
    size_t from = reader->done();
    std::vector<logged_family> found;
    if (reader->text(sizeof FAMILIES - 1) != FAMILIES)
        return;
    uint64_t count = reader->number(4);
    for (uint64_t i = 0; i < count && !reader->is_short; i++) {
        uint64_t family = reader->number(4);
        found.push_back({static_cast<uint32_t>(family), decode_keyspace(reader->number(8))});
    }
    if (is_summed(slot, from, reader))
        out->families = std::move(found);
}

/* False: it is not whole. Allocates no more than the slot has room for. */
static bool decode(const Slice &slot, uint64_t *sequence, synced_record *out)
{
    slot_reader reader(slot);
    if (reader.text(sizeof MAGIC - 1) != MAGIC)
        return false;
    *sequence = reader.number(8);
    out->written_us = static_cast<int64_t>(reader.number(8));
    uint64_t logs = reader.number(4);
    uint64_t tables = reader.number(4);
    out->unnamed_tables = reader.number(8);
    out->manifest = reader.number(8);
    out->manifest_length = reader.number(8);
    decode_logs(&reader, logs, out);
    decode_tables(&reader, tables, out);
    if (!is_summed(slot, 0, &reader))
        return false;
    decode_families(slot, &reader, out);
    return true;
}

/* --- the file --- */

void synced_file::set_place(rocksdb::FileSystem *files_, const std::string &directory_)
{
    files = files_;
    directory = directory_;
}

static std::string path_in(const std::string &directory)
{
    return directory + "/SYNCED";
}

bool synced_file::is_gone() const
{
    return slot_size > 0 && ::is_gone(path_in(directory), inode);
}

status synced_file::read(synced_record *out)
{
    std::string text;
    rocksdb::Status s = rocksdb::ReadFileToString(files, path_in(directory), &text);
    if (s.IsPathNotFound() || s.IsNotFound())
        return status_make(STATUS_NOT_FOUND, "the file SYNCED is missing");
    if (!s.ok())
        return status_from(s);
    uint64_t size = text.size() / 2;
    for (unsigned i = 0; i < 2; i++) {
        synced_record record;
        uint64_t number;
        if (!decode(Slice(text.data() + i * size, size), &number, &record) || number <= sequence)
            continue;
        sequence = number;
        next_slot = 1 - i;
        slot_size = size;
        *out = record;
    }
    inode = inode_of(path_in(directory));
    if (slot_size == 0)
        return status_make(STATUS_DATA_LOSS, "the file SYNCED is damaged");
    return status_ok();
}

/* With the slot as the first of two. What was there before holds until it is renamed. */
IOStatus synced_file::make(const std::string &slot)
{
    std::string path = path_in(directory);
    uint64_t size = std::max<uint64_t>(slot_size, LEAST_SLOT);
    while (size < slot.size())
        size *= 2;
    std::string content = slot;
    content.resize(2 * size);
    rocksdb::Status s = rocksdb::WriteStringToFile(files, content, path + ".new", true);
    if (!s.ok())
        return rocksdb::status_to_io_status(std::move(s));
    IOStatus renamed = files->RenameFile(path + ".new", path, IOOptions(), nullptr);
    if (!renamed.ok())
        return renamed;
    file.reset();
    slot_size = size;
    next_slot = 1;
    IOStatus named = sync_directory(files, directory);
    if (named.ok())
        inode = inode_of(path);
    return named;
}

IOStatus synced_file::overwrite(const std::string &slot)
{
    IOStatus s;
    if (file == nullptr)
        s = files->NewRandomRWFile(path_in(directory), FileOptions(), &file, nullptr);
    if (s.ok())
        s = file->Write(next_slot * slot_size, slot, IOOptions(), nullptr);
    if (s.ok())
        s = file->Sync(IOOptions(), nullptr);
    if (s.ok())
        next_slot = 1 - next_slot;
    return s;
}

IOStatus synced_file::write(const synced_record &record)
{
    return write_slot(record, false);
}

IOStatus synced_file::write_afresh(const synced_record &record)
{
    return write_slot(record, true);
}

IOStatus synced_file::write_slot(const synced_record &record, bool is_afresh)
{
    std::string slot;
    sequence++; /* also of what fails, which may be on the disk all the same */
    encode(record, sequence, &slot);
    if (is_afresh || slot.size() > slot_size)
        return make(slot);
    return overwrite(slot);
}
