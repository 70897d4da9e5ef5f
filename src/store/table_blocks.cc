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
               const table_pacer &pacer_, bool is_direct, table_findings *findings_)
        : file(file_), number(number_), size(size_),
          alignment(is_direct ? file_->GetRequiredBufferAlignment() : 1), pacer(pacer_),
          findings(findings_)
    {
    }

    /* False: the whole is in doubt, or the pacer wants no more. */
    bool run()
    {
        std::map<std::string, std::string> properties;
        return read_footer() && read_meta_blocks(&properties) && read_index(properties);
    }

  private:
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
        if (!read_block(at, &raw))
            return false;
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

    /* What is deleted by ranges is among them: one that cannot be read puts all keys in doubt. */
    bool read_meta_blocks(std::map<std::string, std::string> *properties)
    {
        std::string list, block;
        if (!read_expanded(meta, &list))
            return doubt("the list of its meta blocks is damaged");
        block_walk walk(list, false);
        while (walk.next()) {
            handle at;
            Slice value = walk.value;
            if (!take_handle(&value, &at) || !read_block(at, &block))
                return doubt("one of its meta blocks is damaged");
            if (walk.key == "rocksdb.properties" && !read_properties(at, properties))
                return doubt("its properties are damaged");
            if (walk.key == "rocksdb.properties" && !is_itself(*properties))
                return doubt("it is another table");
        }
        return walk.is_sound || doubt("the list of its meta blocks is damaged");
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

    /* A table knows the number that it was written with. One that was taken in has that of whoever
     * wrote it; and of some the number is not known. */
    bool is_itself(const std::map<std::string, std::string> &properties) const
    {
        auto found = properties.find("rocksdb.original.file.number");
        uint64_t original = 0;
        if (found == properties.end() || properties.count("rocksdb.external_sst_file.version") > 0)
            return true;
        Slice value(found->second);
        return take_varint(&value, &original) && (original == 0 || original == number);
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
                findings->blocks.push_back({walk.place.offset, walk.place.size,
                                            is_first ? std::string() : after(before), last + '\0',
                                            deletion_of(walk.key)});
            if (!pacer(walk.place.size))
                return false;
            before = last;
            is_first = false;
        }
        return walk.is_sound || doubt("its index is damaged");
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
    rocksdb::ChecksumType checksum = rocksdb::ChecksumType::kNoChecksum;
    handle meta, index;
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

status look_at_table(rocksdb::FileSystem *files, const std::string &path, uint64_t size,
                     const table_pacer &pacer, bool is_direct, table_findings *out)
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
    if (!table_look(file.get(), table_number(path), size, pacer, is_direct, out).run() &&
        out->whole.empty())
        return status_make(STATUS_CANCELLED, "cancelled");
    return status_ok();
}
