/* A table looked at block by block, without RocksDB, which tells of the first damaged block only,
 * and of the keys in it nothing.
 *
 * What is read here is what options.cc has RocksDB write: block-based tables of format 5, indexes
 * without partitions. Anything else is a table of which the whole is in doubt.
 *
 *     data blocks … meta blocks, index    each with a byte, how it is compressed, and a checksum
 *     footer                              where the index and the list of meta blocks are
 *
 * Nothing read is believed before its checksum was looked at. The footer has none: a wrong one
 * leads to a block whose checksum is wrong. */
#include "store/internal.h"
#include "store/rocksdb_versions.h"

#include <algorithm>
#include <cstring>
#include <map>

using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

namespace {

enum : size_t {
    TRAILER_SIZE = 5, /* of a block: how it is compressed, its checksum */
    FOOTER_SIZE = 53,
    HANDLES_AT = 1, /* in the footer */
    VERSION_AT = FOOTER_SIZE - 12,
    MAGIC_AT = FOOTER_SIZE - 8,
    SEQUENCE_SIZE = 8, /* behind a key, where indexes have more than the key */
};

enum : int { READ_ATTEMPTS = 5 };
constexpr std::chrono::milliseconds READ_PAUSE(200); /* by the steady clock */
constexpr uint64_t BLOCK_LARGEST = 1 << 30;
constexpr uint64_t TABLE_MAGIC = 0x88e241b785f4cff7ull;
constexpr uint32_t TABLE_FORMAT = 5;

/* --- bytes --- */

template <typename number> bool take_fixed(Slice *in, number *out)
{
    if (in->size() < sizeof *out)
        return false;
    memcpy(out, in->data(), sizeof *out); /* tables are little-endian, as the machines are */
    in->remove_prefix(sizeof *out);
    return true;
}

bool take_varint(Slice *in, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; shift < 64 && !in->empty(); shift += 7) {
        auto byte = static_cast<unsigned char>((*in)[0]);
        in->remove_prefix(1);
        *out |= static_cast<uint64_t>(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0)
            return true;
    }
    return false;
}

bool take_slice(Slice *in, uint64_t size, Slice *out)
{
    if (in->size() < size)
        return false;
    *out = Slice(in->data(), size);
    in->remove_prefix(size);
    return true;
}

/* --- LZ4 --- */

/* A length whose first four bits were all set goes on. */
bool take_length(Slice *in, uint64_t *length)
{
    if (*length < 15)
        return true;
    unsigned char byte = 255;
    while (byte == 255) {
        if (!take_fixed(in, &byte))
            return false;
        *length += byte;
    }
    return true;
}

bool copy_match(Slice *in, uint64_t length, uint64_t most, std::string *out)
{
    uint16_t distance = 0;
    if (!take_fixed(in, &distance) || !take_length(in, &length))
        return false;
    length += 4;
    if (distance == 0 || distance > out->size() || length > most - out->size())
        return false;
    for (; length > 0; length--)
        out->push_back((*out)[out->size() - distance]);
    return true;
}

/* Its size, and then LZ4's sequences: literals, and a copy of what came before. */
bool expand_lz4(Slice in, std::string *out)
{
    uint64_t size = 0;
    if (!take_varint(&in, &size) || size > BLOCK_LARGEST)
        return false;
    out->clear();
    out->reserve(size);
    while (!in.empty()) {
        unsigned char token = 0;
        take_fixed(&in, &token);
        uint64_t literals = token >> 4;
        Slice text;
        if (!take_length(&in, &literals) || !take_slice(&in, literals, &text))
            return false;
        if (text.size() > size - out->size())
            return false;
        out->append(text.data(), text.size());
        if (!in.empty() && !copy_match(&in, token & 15, size, out))
            return false;
    }
    return out->size() == size;
}

/* --- blocks --- */

struct handle {
    uint64_t offset = 0;
    uint64_t size = 0; /* without the trailer */
};

/* A key as a table has it: the user's, then its sequence number and kind as one number. */
uint64_t sequence_of(const std::string &key)
{
    uint64_t packed = 0;
    memcpy(&packed, key.data() + key.size() - SEQUENCE_SIZE, SEQUENCE_SIZE);
    return packed >> 8;
}

bool take_handle(Slice *in, handle *out)
{
    return take_varint(in, &out->offset) && take_varint(in, &out->size);
}

/* Entries of a block, one after the other. An index has no sizes of values: a value is a handle,
 * or, of an entry that shares its key's start with the one before, by how much larger it is. */
class block_walk {
  public:
    block_walk(const std::string &block, bool is_index_) : rest(block), is_index(is_index_)
    {
        uint32_t restarts = 0;
        if (block.size() >= sizeof restarts)
            memcpy(&restarts, block.data() + block.size() - sizeof restarts, sizeof restarts);
        uint64_t tail = (restarts + uint64_t(1)) * sizeof restarts;
        is_sound = tail <= block.size();
        rest = Slice(block.data(), is_sound ? block.size() - tail : 0);
    }

    /* False at the end, or where it does not parse: then `is_sound` is false. */
    bool next()
    {
        if (rest.empty())
            return false;
        is_sound = take();
        return is_sound;
    }

    std::string key;
    Slice value;  /* unless it is an index */
    handle place; /* if it is one */
    bool is_sound;

  private:
    bool take()
    {
        uint64_t shared = 0, more = 0, size = 0;
        Slice tail;
        if (!take_varint(&rest, &shared) || !take_varint(&rest, &more))
            return false;
        if (!is_index && !take_varint(&rest, &size))
            return false;
        if (shared > key.size() || !take_slice(&rest, more, &tail))
            return false;
        key.resize(shared);
        key.append(tail.data(), tail.size());
        return is_index ? take_place(shared > 0) : take_slice(&rest, size, &value);
    }

    bool take_place(bool is_difference)
    {
        uint64_t zigzag = 0;
        if (!is_difference)
            return take_handle(&rest, &place);
        if (!take_varint(&rest, &zigzag))
            return false;
        place.offset += place.size + TRAILER_SIZE;
        place.size += (zigzag >> 1) ^ (~(zigzag & 1) + 1);
        return true;
    }

    Slice rest;
    const bool is_index;
};

/* --- one table --- */

class table_look {
  public:
    table_look(rocksdb::FSRandomAccessFile *file_, uint64_t number_, uint64_t size_,
               const table_pacer &pacer_, bool is_direct, table_findings *findings_,
               table_summary *summary_)
        : file(file_), number(number_), size(size_),
          alignment(is_direct ? file_->GetRequiredBufferAlignment() : 1), pacer(pacer_),
          findings(findings_), summary(summary_)
    {
    }

    /* False: the whole is in doubt, or the pacer wants no more. */
    bool run()
    {
        std::map<std::string, std::string> properties;
        if (!read_footer())
            return false;
        if (!read_meta_blocks(&properties)) {
            look_further(properties);
            return false;
        }
        if (summary != nullptr)
            note_family(properties);
        sections = sections_of(properties);
        return read_index(properties);
    }

  private:
    /* RocksDB opens a table without some of its meta blocks, and then meets damaged blocks of data
     * by itself: they are to have stand-ins, too. */
    void look_further(const std::map<std::string, std::string> &properties)
    {
        std::string why = findings->whole;
        if (summary == nullptr && !properties.empty())
            read_index(properties);
        findings->whole = why;
    }

    /* Always false. */
    bool doubt(const char *what)
    {
        findings->whole = what;
        return false;
    }

    /* A disk that fails once may have been a cable. */
    IOStatus read_patiently(uint64_t offset, uint64_t count, Slice *got, char *at)
    {
        IOStatus s;
        for (int attempt = 0; attempt < READ_ATTEMPTS; attempt++) {
            s = file->Read(offset, count, IOOptions(), got, at, nullptr);
            if (s.ok())
                break;
            std::this_thread::sleep_for(READ_PAUSE);
        }
        findings->is_unreadable = findings->is_unreadable || s.IsIOError();
        return s;
    }

    /* What is read directly begins, ends and lies in memory at borders of the disk's blocks. */
    IOStatus read(uint64_t offset, uint64_t count, std::string *out)
    {
        uint64_t before = offset % alignment;
        uint64_t wanted = (before + count + alignment - 1) / alignment * alignment;
        space.resize(wanted + alignment);
        char *at = &space[0];
        at += (alignment - reinterpret_cast<uintptr_t>(at) % alignment) % alignment;
        Slice got;
        IOStatus s = read_patiently(offset - before, wanted, &got, at);
        if (s.ok() && got.size() < before + count)
            return IOStatus::Corruption("it ends here");
        if (s.ok())
            out->assign(got.data() + before, count);
        return s;
    }

    /* Its bytes and how they are compressed; false if they are not what was written. */
    bool read_block(const handle &at, std::string *out)
    {
        if (at.size > BLOCK_LARGEST || at.offset > size ||
            at.size + TRAILER_SIZE > size - at.offset ||
            !read(at.offset, at.size + TRAILER_SIZE, out).ok())
            return false;
        uint32_t stored = 0;
        memcpy(&stored, out->data() + at.size + 1, sizeof stored);
        return rocksdb::ComputeBuiltinChecksum(checksum, out->data(), at.size + 1) == stored;
    }

    bool read_expanded(const handle &at, std::string *out)
    {
        std::string raw;
        return read_block(at, &raw) && expand(at, std::move(raw), out);
    }

    static bool expand(const handle &at, std::string raw, std::string *out)
    {
        auto compression = static_cast<rocksdb::CompressionType>(raw[at.size]);
        raw.resize(at.size);
        if (compression == rocksdb::CompressionType::kLZ4Compression)
            return expand_lz4(raw, out);
        *out = std::move(raw);
        return compression == rocksdb::CompressionType::kNoCompression;
    }

    bool read_footer()
    {
        std::string footer;
        if (size < FOOTER_SIZE || !read(size - FOOTER_SIZE, FOOTER_SIZE, &footer).ok())
            return doubt("its footer cannot be read");
        uint32_t format = 0;
        uint64_t magic = 0;
        memcpy(&format, &footer[VERSION_AT], sizeof format);
        memcpy(&magic, &footer[MAGIC_AT], sizeof magic);
        checksum = static_cast<rocksdb::ChecksumType>(footer[0]);
        Slice handles(&footer[HANDLES_AT], VERSION_AT - HANDLES_AT);
        bool is_sound = magic == TABLE_MAGIC && format == TABLE_FORMAT &&
                        checksum == rocksdb::ChecksumType::kXXH3 && take_handle(&handles, &meta) &&
                        take_handle(&handles, &index);
        return is_sound || doubt("its footer is damaged");
    }

    /* Reads the meta blocks. Deletions by ranges are among them: one that cannot be read puts all
     * keys in doubt. */
    bool read_meta_blocks(std::map<std::string, std::string> *properties)
    {
        std::string list, block;
        if (!read_expanded(meta, &list))
            return doubt("the list of its meta blocks is damaged");
        block_walk walk(list, false);
        bool is_whole = true;
        while (walk.next()) {
            handle at;
            Slice value = walk.value;
            if (!take_handle(&value, &at) || !read_block(at, &block)) {
                is_whole = doubt("one of its meta blocks is damaged");
                continue;
            }
            if (walk.key == "rocksdb.properties" && !read_properties(at, properties))
                return doubt("its properties are damaged");
            if (walk.key == "rocksdb.properties" && !is_itself(*properties))
                return doubt("it is another table");
            if (walk.key == "rocksdb.range_del" && summary != nullptr && !note_deleted(at, block))
                return doubt("one of its meta blocks is damaged");
        }
        return is_whole && (walk.is_sound || doubt("the list of its meta blocks is damaged"));
    }

    bool read_properties(const handle &at, std::map<std::string, std::string> *out)
    {
        std::string block;
        if (!read_expanded(at, &block))
            return false;
        block_walk walk(block, false);
        while (walk.next())
            (*out)[walk.key] = walk.value.ToString();
        return walk.is_sound;
    }

    /* A table knows the number that it was written with. One that was imported has that of the
     * store that wrote it; and of some the number is not known. */
    bool is_itself(const std::map<std::string, std::string> &properties) const
    {
        auto found = properties.find("rocksdb.original.file.number");
        uint64_t original = 0;
        if (found == properties.end() || properties.count("rocksdb.external_sst_file.version") > 0)
            return true;
        Slice value(found->second);
        return take_varint(&value, &original) && (original == 0 || original == number);
    }

    /* A table that was taken in has a number that no family has, and no name. */
    void note_family(const std::map<std::string, std::string> &properties)
    {
        uint64_t number = 0;
        auto id = properties.find("rocksdb.column.family.id");
        auto name = properties.find("rocksdb.column.family.name");
        Slice text = id == properties.end() ? Slice() : Slice(id->second);
        summary->has_family = take_varint(&text, &number) && name != properties.end() &&
                              !name->second.empty() && number < INT32_MAX;
        summary->family = static_cast<uint32_t>(number);
        summary->family_name = summary->has_family ? name->second : std::string();
    }

    bool note_deleted(const handle &at, const std::string &raw)
    {
        std::string block;
        if (!expand(at, raw, &block))
            return false;
        block_walk walk(block, false);
        while (walk.next()) {
            if (walk.key.size() < SEQUENCE_SIZE)
                return false;
            summary->deleted.push_back({walk.key.substr(0, walk.key.size() - SEQUENCE_SIZE),
                                        walk.value.ToString(), sequence_of(walk.key)});
        }
        return walk.is_sound;
    }

    /* False: it does not parse, although it is what was written. */
    bool note_entries(const handle &at, std::string raw)
    {
        std::string block;
        if (!expand(at, std::move(raw), &block))
            return false;
        block_walk walk(block, false);
        while (walk.next()) {
            if (walk.key.size() < SEQUENCE_SIZE)
                return false;
            uint64_t sequence = sequence_of(walk.key);
            summary->least_sequence = std::min(summary->least_sequence, sequence);
            summary->greatest_sequence = std::max(summary->greatest_sequence, sequence);
            note_key(walk.key);
        }
        return walk.is_sound;
    }

    /* Keys come in their order, except the bounds of damaged blocks. */
    void note_key(const std::string &key)
    {
        if (!summary->has_keys)
            summary->smallest = key;
        summary->has_keys = true;
        summary->largest = key;
    }

    /* Notes a damaged block: it may have any key up to the one in the index, the first with the
     * greatest sequence number, which sorts before all others. */
    void note_unread(const bad_block &block)
    {
        if (!summary->has_keys)
            note_key(block.from + '\1' + std::string(SEQUENCE_SIZE - 1, '\xff'));
        note_key(block.last);
    }

    static bool is_one(const std::map<std::string, std::string> &properties, const char *name)
    {
        auto found = properties.find(name);
        return found != properties.end() && found->second == std::string(1, '\1');
    }

    bool read_index(const std::map<std::string, std::string> &properties)
    {
        auto kind = properties.find("rocksdb.block.based.table.index.type");
        bool is_known = (kind == properties.end() || kind->second == std::string(4, '\0')) &&
                        is_one(properties, "rocksdb.index.value.is.delta.encoded");
        std::string block;
        if (!is_known || !read_expanded(index, &block))
            return doubt("its index is damaged");
        has_sequences = !is_one(properties, "rocksdb.index.key.is.user.key");
        return pacer == nullptr || read_data_blocks(block);
    }

    /* The key in the index: at least the block's last, and less than the next one's first. */
    bool key_of(const std::string &separator, std::string *out) const
    {
        size_t tail = has_sequences ? SEQUENCE_SIZE : 0;
        if (separator.size() < tail)
            return false;
        out->assign(separator, 0, separator.size() - tail);
        return true;
    }

    bool read_data_blocks(const std::string &index_block)
    {
        std::string block, before, last;
        bool is_first = true;
        block_walk walk(index_block, true);
        while (walk.next()) {
            if (!key_of(walk.key, &last))
                return doubt("its index is damaged");
            if (!read_block(walk.place, &block))
                note_damage(walk, is_first ? std::string() : after(before), last + '\0');
            else if (summary != nullptr && !note_entries(walk.place, block))
                return doubt("one of its blocks does not parse");
            if (!pacer(walk.place.size))
                return false;
            before = last;
            is_first = false;
        }
        return walk.is_sound || doubt("its index is damaged");
    }

    void note_damage(const block_walk &at, const std::string &from, const std::string &to)
    {
        findings->blocks.push_back({at.place.offset, at.place.size, from, to, deletion_of(at.key)});
        clip_to_sections(sections, &findings->blocks.back());
        if (summary != nullptr)
            note_unread(findings->blocks.back());
    }

    /* With sequences in the index a key may go on from one block to the next. */
    std::string after(const std::string &before) const
    {
        return has_sequences ? before : before + '\0';
    }

    /* The key in the index as a table has it: a sequence number, and that it is deleted (0). */
    std::string deletion_of(const std::string &separator) const
    {
        std::string key = separator;
        if (has_sequences)
            key[key.size() - SEQUENCE_SIZE] = '\0';
        else
            key.append(SEQUENCE_SIZE, '\0');
        return key;
    }

    rocksdb::FSRandomAccessFile *const file;
    const uint64_t number; /* in its name */
    const uint64_t size;
    const uint64_t alignment;
    const table_pacer &pacer;
    table_findings *const findings;
    table_summary *const summary; /* NULL: not wanted */
    rocksdb::ChecksumType checksum = rocksdb::ChecksumType::kNoChecksum;
    handle meta, index;
    std::vector<table_section> sections;
    std::string space;
    bool has_sequences = false;
};

} // namespace

/* Past the cache, if the file system has that: tmpfs has not. */
static IOStatus open_table(rocksdb::FileSystem *files, const std::string &path, bool *is_direct,
                           std::unique_ptr<rocksdb::FSRandomAccessFile> *out)
{
    rocksdb::FileOptions options;
    options.use_direct_reads = *is_direct;
    IOStatus s = files->NewRandomAccessFile(path, options, out, nullptr);
    if (s.ok() || !*is_direct)
        return s;
    *is_direct = options.use_direct_reads = false;
    return files->NewRandomAccessFile(path, options, out, nullptr);
}

static status look_at(rocksdb::FileSystem *files, const std::string &path, uint64_t size,
                      const table_pacer &pacer, bool is_direct, table_findings *out,
                      table_summary *summary)
{
    *out = {};
    uint64_t present = 0;
    std::unique_ptr<rocksdb::FSRandomAccessFile> file;
    IOStatus s = files->GetFileSize(path, IOOptions(), &present, nullptr);
    if (s.ok())
        s = open_table(files, path, &is_direct, &file);
    if (s.IsPathNotFound() || s.IsNotFound())
        out->whole = "it is missing";
    else if (!s.ok())
        return status_from(s);
    else if (present != size)
        out->whole = "it has " + std::to_string(present) + " bytes of " + std::to_string(size);
    if (!out->whole.empty())
        return status_ok();
    /* What the kernel has in memory may be damaged where the disk is not. A hint, that not all file
     * systems take. */
    file->InvalidateCache(0, 0).PermitUncheckedError();
    if (!table_look(file.get(), table_number(path), size, pacer, is_direct, out, summary).run() &&
        out->whole.empty())
        return status_make(STATUS_CANCELLED, "cancelled");
    return status_ok();
}

status look_at_table(rocksdb::FileSystem *files, const std::string &path, uint64_t size,
                     const table_pacer &pacer, bool is_direct, table_findings *out)
{
    return look_at(files, path, size, pacer, is_direct, out, nullptr);
}

status summarize_table(rocksdb::FileSystem *files, const std::string &path, uint64_t size,
                       table_summary *summary, table_findings *findings)
{
    *summary = {};
    return look_at(
        files, path, size, [](uint64_t) { return true; }, false, findings, summary);
}
