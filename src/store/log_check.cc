/* Damage in the write-ahead log that a power cut cannot have done.
 *
 * RocksDB replays a log up to the first piece that is not whole, and takes that for the log's end:
 * right after a power cut, when the end may be torn or, since the kernel writes pages back in any
 * order, have holes. But damage to what had been synced would silently take everything behind it
 * along. So each log is looked through before RocksDB opens it. The proof of damage is
 *
 *     something broken … a whole record of a synced batch … the beginning of another record
 *
 * since the synced batch's writer came back, and the next record was written, only when all before
 * it was on the disk. Then the store is not opened: its owner must know. (What breaks in the last
 * two records cannot be told from a power cut.) To make synced batches known, store_write puts a
 * mark at the end of every batch, which RocksDB keeps in the log only.
 *
 * The log as RocksDB writes it: blocks of 32 KiB; in a block pieces, and less than a piece's header
 * of zeroes at its end. A piece: masked CRC-32C of type and payload (4 bytes), size of the payload
 * (2), type (1), payload; numbers lowest byte first. A record is one FULL piece, or FIRST, MIDDLE
 * …, LAST. */
#include "store/internal.h"

#include <algorithm>

using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

/* RocksDB's own, which it exports without a header. */
namespace rocksdb {
namespace crc32c {
uint32_t Extend(uint32_t crc, const char *data, size_t size);
} // namespace crc32c
} // namespace rocksdb

enum : size_t { BLOCK = 32 << 10, HEADER = 7 };
enum piece_type : uint8_t { FULL = 1, FIRST = 2, MIDDLE = 3, LAST = 4 };

/* A mark as it stands in the record: RocksDB's tag for log-only data, the size, the letter. */
static const char SYNCED_TAIL[] = {3, 1, LOG_MARK_SYNCED};

namespace {

class log_scanner {
  public:
    /* Blocks in their order; all but the last are whole. */
    void scan(const Slice &block)
    {
        size_t offset = 0;
        while (block.size() - offset >= HEADER) {
            size_t size = scan_piece(Slice(block.data() + offset, block.size() - offset));
            if (size == 0) {
                note_damage(scanned + offset);
                break;
            }
            offset += size;
        }
        scanned += block.size();
    }

    bool found_proof() const { return proven; }
    uint64_t damage_offset() const { return damage; }

  private:
    /* The size of the piece, 0 if it is not whole. */
    size_t scan_piece(const Slice &rest)
    {
        const uint8_t *header = reinterpret_cast<const uint8_t *>(rest.data());
        size_t size = header[4] | (size_t)header[5] << 8;
        uint8_t type = header[6];
        if (type < FULL || type > LAST || HEADER + size > rest.size())
            return 0;
        uint32_t masked = header[0] | (uint32_t)header[1] << 8 | (uint32_t)header[2] << 16 |
                          (uint32_t)header[3] << 24;
        /* Type and payload lie side by side. */
        if (masked != mask(rocksdb::crc32c::Extend(0, rest.data() + HEADER - 1, size + 1)))
            return 0;
        if (is_damaged)
            note_piece((piece_type)type, Slice(rest.data() + HEADER, size));
        return HEADER + size;
    }

    static uint32_t mask(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

    void note_damage(uint64_t offset)
    {
        in_record = false;
        if (!is_damaged)
            damage = offset;
        is_damaged = true;
    }

    void note_piece(piece_type type, const Slice &payload)
    {
        bool begins = type == FULL || type == FIRST;
        bool ends = type == FULL || (type == LAST && in_record);
        proven = proven || (begins && synced_since);
        if (ends && payload.ends_with(Slice(SYNCED_TAIL, sizeof SYNCED_TAIL)))
            synced_since = true;
        in_record = type == FIRST || (type == MIDDLE && in_record);
    }

    uint64_t scanned = 0;
    uint64_t damage = 0; /* where the first broken piece is */
    bool is_damaged = false;
    bool in_record = false;    /* since the damage: pieces of a record whose FIRST was whole */
    bool synced_since = false; /* since the damage: a whole record of a synced batch */
    bool proven = false;
};

} // namespace

static IOStatus scan_log(rocksdb::FileSystem *files, const std::string &path, log_scanner *scanner)
{
    std::unique_ptr<rocksdb::FSSequentialFile> file;
    IOStatus s = files->NewSequentialFile(path, rocksdb::FileOptions(), &file, nullptr);
    auto scratch = std::make_unique<char[]>(BLOCK);
    Slice block(scratch.get(), BLOCK);
    while (s.ok() && block.size() == BLOCK && !scanner->found_proof()) {
        s = file->Read(BLOCK, IOOptions(), &block, scratch.get(), nullptr);
        if (s.ok())
            scanner->scan(block);
    }
    return s;
}

static status check_log(rocksdb::FileSystem *files, const std::string &path)
{
    log_scanner scanner;
    IOStatus s = scan_log(files, path, &scanner);
    if (!s.ok())
        return status_from(s);
    if (scanner.found_proof())
        return status_make(STATUS_DATA_LOSS,
                           "write-ahead log %s is damaged at byte %llu, before synced writes",
                           path.c_str(), (unsigned long long)scanner.damage_offset());
    return status_ok();
}

status check_logs(rocksdb::FileSystem *files, const std::string &directory)
{
    std::vector<std::string> names;
    IOStatus s = files->GetChildren(directory, IOOptions(), &names, nullptr);
    if (!s.ok())
        return status_from(s);
    std::sort(names.begin(), names.end());
    for (const std::string &name : names) {
        if (is_log_name(name))
            TRY(check_log(files, directory + "/" + name));
    }
    return status_ok();
}
