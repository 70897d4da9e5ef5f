/* What RocksDB reads in place of what is damaged: for a table that cannot be opened a stand-in, an
 * empty table of the same size; for a block an empty block of the same size. The file on the disk
 * stays as it is.
 *
 * A database with one table that is missing, cut off or without a footer does not open, and a
 * keyspace whose level 0 has such a table cannot be read anywhere: hence stand-ins. A table with a
 * damaged block cannot be compacted away, nor can the key before it be read: hence empty blocks.
 *
 * No reader reads through one by mistake: the keys have been closed before, over all levels
 * (damage.cc). */
#include "store/internal.h"
#include "store/rocksdb_versions.h"

#include "rocksdb/sst_file_writer.h"

#include <algorithm>
#include <cstring>

namespace {

enum : size_t { TRAILER_SIZE = 5, FOOTER_SIZE = 53 };

/* --- a block, a table, with next to nothing in it --- */

void append_varint(std::string *out, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        out->push_back(static_cast<char>(number | 0x80));
    out->push_back(static_cast<char>(number));
}

/* An entry that deletes the key, with nothing in common with the one before, and no value. The
 * first number, a zero, takes as many bytes more as are wanted. */
std::string deletion(const std::string &key, size_t more)
{
    std::string entry(more, '\x80');
    entry.push_back('\0');
    append_varint(&entry, key.size());
    entry.push_back('\0');
    return entry + key;
}

/* A block of one entry, and of places where reading may begin (its own) up to the size that it is
 * to have. One without entries would do for iterators, but RocksDB 7.8 reads uninitialised memory
 * when it gets a key from that. Empty if there is no room. */
std::string smallest_block(const std::string &key, uint64_t size)
{
    std::string block = deletion(key, 0);
    if (block.size() + 2 * sizeof(uint32_t) > size)
        return std::string();
    block = deletion(key, (size - block.size()) % sizeof(uint32_t));
    if (block.size() + 2 * sizeof(uint32_t) > size)
        return std::string();
    auto places = static_cast<uint32_t>((size - block.size()) / sizeof(uint32_t) - 1);
    block.append(places * sizeof places, '\0');
    block.append(reinterpret_cast<const char *>(&places), sizeof places);
    block.append(TRAILER_SIZE, '\0'); /* it is not compressed */
    uint32_t sum =
        rocksdb::ComputeBuiltinChecksum(rocksdb::ChecksumType::kXXH3, block.data(), size + 1);
    memcpy(&block[size + 1], &sum, sizeof sum);
    return block;
}

/* A table deletes the least key that the damaged one had: one without anything is not to be made,
 * and that key is out of service. Taken in as one that comes from elsewhere, all in it has the
 * newest sequence number of the file that it stands for. */
rocksdb::Status write_table(rocksdb::Env *env, const std::string &key)
{
    rocksdb::Options options;
    options.env = env;
    options.compression = rocksdb::CompressionType::kNoCompression;
    rocksdb::BlockBasedTableOptions table;
    table.format_version = 5;
    table.checksum = rocksdb::ChecksumType::kXXH3;
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options);
    rocksdb::Status s = writer.Open("/table");
    if (s.ok())
        s = writer.Delete(key);
    return s.ok() ? writer.Finish() : s;
}

status make_table(const std::string &key, std::string *out)
{
    std::unique_ptr<rocksdb::Env> memory(rocksdb::NewMemEnv(rocksdb::Env::Default()));
    rocksdb::Status s = write_table(memory.get(), key);
    if (s.ok())
        s = rocksdb::ReadFileToString(memory.get(), "/table", out);
    return status_from(s);
}

} // namespace

/* --- what stands in for one file --- */

/* A table's start, zeros, its footer: at the end, where it is looked for. */
void stand_in::read_table(uint64_t offset, size_t count, char *out) const
{
    memset(out, 0, count);
    size_t body = table.size() - FOOTER_SIZE;
    overlay(offset, count, out, 0, table.substr(0, body));
    overlay(offset, count, out, size - FOOTER_SIZE, table.substr(body));
}

/* Copies the part of `piece`, which lies at `at`, that falls into what was read. */
void stand_in::overlay(uint64_t offset, size_t count, char *out, uint64_t at,
                       const std::string &piece)
{
    uint64_t from = std::max(offset, at);
    uint64_t to = std::min<uint64_t>(offset + count, at + piece.size());
    if (from < to)
        memcpy(out + (from - offset), piece.data() + (from - at), to - from);
}

bool stand_in::has_block(uint64_t offset) const
{
    return std::any_of(blocks.begin(), blocks.end(),
                       [&](const auto &block) { return block.first == offset; });
}

void stand_in::cover(uint64_t offset, size_t count, char *out) const
{
    for (const auto &block : blocks)
        overlay(offset, count, out, block.first, block.second);
}

/* --- all of them --- */

status stand_ins::put_table(uint64_t file, uint64_t size, const std::string &smallest,
                            bool is_for_good)
{
    return guarded([&] {
        auto made = std::make_shared<stand_in>();
        std::shared_ptr<const stand_in> former = find(file);
        made->size = size;
        made->is_for_good = is_for_good;
        if (former != nullptr) /* for readers that have it open */
            made->blocks = former->blocks;
        TRY(make_table(smallest, &made->table));
        if (made->table.size() > size)
            return status_make(STATUS_DATA_LOSS, "the table file %06llu.sst is too small",
                               (unsigned long long)file);
        put(file, std::move(made));
        return status_ok();
    });
}

void stand_ins::put_blocks(uint64_t file, const std::vector<bad_block> &blocks)
{
    auto made = std::make_shared<stand_in>();
    made->is_for_good = true;
    for (const bad_block &block : blocks)
        made->blocks.emplace_back(block.offset, smallest_block(block.last, block.size));
    put(file, std::move(made));
}

void stand_ins::put(uint64_t file, std::shared_ptr<const stand_in> made)
{
    std::unique_lock<std::shared_mutex> lock(mutex);
    by_file[file] = std::move(made);
    count.store(by_file.size(), std::memory_order_release);
}

void stand_ins::remove(uint64_t file)
{
    std::unique_lock<std::shared_mutex> lock(mutex);
    by_file.erase(file);
    count.store(by_file.size(), std::memory_order_release);
}

std::shared_ptr<const stand_in> stand_ins::find(uint64_t file) const
{
    if (count.load(std::memory_order_acquire) == 0)
        return nullptr;
    std::shared_lock<std::shared_mutex> lock(mutex);
    auto found = by_file.find(file);
    return found == by_file.end() ? nullptr : found->second;
}
