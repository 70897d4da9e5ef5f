/* What a write-ahead log has, up to the first thing in it that is broken, and behind that.
 *
 * RocksDB replays a log up to the first piece that is not whole, and takes that for the log's end:
 * right after a power cut, when the end may be torn or, since the kernel writes pages back in any
 * order, have holes. Some damage cannot be a power cut's even by what the log alone says:
 *
 *     something broken … a whole record of a synced batch … the beginning of another record
 *
 * since the synced batch's writer came back, and the next record was written, only when all before
 * it was on the disk. To make synced batches known, store_write puts a mark at the end of every
 * batch, which RocksDB keeps in the log only. (For the rest there is SYNCED: log_ends.h.)
 *
 * The log as RocksDB writes it: blocks of 32 KiB; in a block pieces, and less than a piece's header
 * of zeroes at its end. A piece: masked CRC-32C of type and payload (4 bytes), size of the payload
 * (2), type (1), payload; numbers lowest byte first. A record, which is one of our commits, is one
 * FULL piece, or FIRST, MIDDLE …, LAST. It begins with the sequence number of its first entry (8
 * bytes) and how many entries it has (4), each of which has the next number. These rise, so a
 * commit that has former ones again was brought here by somebody else than RocksDB; which ends the
 * process with an assertion when it meets a key twice with one number. */
#include "store/log_ends.h"
#include "store/log_pieces.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

/* RocksDB's own, which it exports without a header. */
namespace rocksdb {
namespace crc32c {
uint32_t Extend(uint32_t crc, const char *data, size_t size);
} // namespace crc32c
} // namespace rocksdb

uint32_t piece_sum(const char *type_and_payload, size_t size)
{
    uint32_t crc = rocksdb::crc32c::Extend(0, type_and_payload, size);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

/* A mark as it stands in the record: RocksDB's tag for log-only data, the size, the letter. */
static const char SYNCED_TAIL[] = {3, 1, LOG_MARK_SYNCED};

enum : size_t { COUNT_AT = 8, COMMIT_HEAD = 12 }; /* what is read of each */

static uint64_t number_at(const std::string &head, size_t from, size_t to)
{
    uint64_t value = 0;
    while (to-- > from)
        value = value << 8 | static_cast<uint8_t>(head[to]);
    return value;
}

namespace {

class log_scanner {
  public:
    log_scanner(log_scan *found_, const log_visitor &visit_) : found(found_), visit(visit_) {}

    /* Blocks in their order; all but the last are whole. */
    void scan(const Slice &block)
    {
        size_t offset = 0;
        while (block.size() - offset >= HEADER) {
            size_t size = scan_piece(Slice(block.data() + offset, block.size() - offset), offset);
            if (size == 0) {
                note_damage(found->size + offset);
                break;
            }
            offset += size;
        }
        /* What is less than a header is nothing, unless it ends the log. */
        rest_is_broken = block.size() < BLOCK && offset < block.size();
        found->size += block.size();
    }

    void finish()
    {
        if (!found->is_damaged && (rest_is_broken || in_record))
            note_damage(found->end);
    }

  private:
    /* The size of the piece, 0 if it is not whole. */
    size_t scan_piece(const Slice &rest, size_t offset)
    {
        const uint8_t *header = reinterpret_cast<const uint8_t *>(rest.data());
        size_t size = header[4] | (size_t)header[5] << 8;
        uint8_t type = header[6];
        if (type < FULL || type > LAST || HEADER + size > rest.size())
            return 0;
        uint32_t masked = header[0] | (uint32_t)header[1] << 8 | (uint32_t)header[2] << 16 |
                          (uint32_t)header[3] << 24;
        /* Type and payload lie side by side. */
        if (masked != piece_sum(rest.data() + HEADER - 1, size + 1))
            return 0;
        note_piece((piece_type)type, Slice(rest.data() + HEADER, size), found->size + offset);
        return HEADER + size;
    }

    void note_damage(uint64_t offset)
    {
        in_record = false;
        if (!found->is_damaged)
            found->damage = offset;
        found->is_damaged = true;
    }

    void note_piece(piece_type type, const Slice &payload, uint64_t offset)
    {
        bool begins = type == FULL || type == FIRST;
        if (begins == in_record && !found->is_damaged)
            note_damage(found->end); /* a record without its end, or an end without its record */
        found->is_proven |= begins && synced_since;
        gather(begins, payload);
        if (type == FULL || (type == LAST && in_record))
            note_commit(payload, offset + HEADER + payload.size());
        in_record = type == FIRST || (type == MIDDLE && in_record);
    }

    void gather(bool begins, const Slice &payload)
    {
        if (begins)
            record.clear();
        size_t rest = COMMIT_HEAD - std::min<size_t>(record.size(), COMMIT_HEAD);
        record.append(payload.data(),
                      visit != nullptr ? payload.size() : std::min(payload.size(), rest));
    }

    /* Whether it has no sequence numbers that the log had before. One without entries has none. */
    bool note_sequence()
    {
        if (found->is_manifest || record.size() < COMMIT_HEAD)
            return true;
        uint64_t first = number_at(record, 0, COUNT_AT);
        uint64_t count = number_at(record, COUNT_AT, COMMIT_HEAD);
        if (count == 0)
            return true;
        if (first < found->next)
            return false;
        if (found->first == 0)
            found->first = first;
        found->next = first + count;
        return true;
    }

    void note_commit(const Slice &last_payload, uint64_t end)
    {
        if (!found->is_damaged && !note_sequence()) {
            found->twin = found->number;
            note_damage(found->end);
        }
        if (visit != nullptr && !found->is_damaged)
            visit(record);
        bool is_synced = last_payload.ends_with(Slice(SYNCED_TAIL, sizeof SYNCED_TAIL));
        if (found->is_damaged) {
            found->commits_behind++;
            synced_since |= is_synced;
        } else {
            found->end = end;
            found->ends_unsynced = !is_synced;
        }
    }

    log_scan *const found;
    const log_visitor &visit;
    std::string record;        /* so far; its head, if nobody visits */
    bool in_record = false;    /* pieces of a record whose FIRST was whole */
    bool synced_since = false; /* since the damage: a whole record of a synced batch */
    bool rest_is_broken = false;
};

} // namespace

IOStatus scan_log(rocksdb::FileSystem *files, const std::string &path, log_scan *out,
                  const log_visitor &visit)
{
    std::unique_ptr<rocksdb::FSSequentialFile> file;
    IOStatus s = files->NewSequentialFile(path, rocksdb::FileOptions(), &file, nullptr);
    auto scratch = std::make_unique<char[]>(BLOCK);
    log_scanner scanner(out, visit);
    Slice block(scratch.get(), BLOCK);
    while (s.ok() && block.size() == BLOCK) {
        s = file->Read(BLOCK, IOOptions(), &block, scratch.get(), nullptr);
        if (s.ok())
            scanner.scan(block);
    }
    scanner.finish();
    return s;
}

IOStatus scan_logs(rocksdb::FileSystem *files, const std::string &directory,
                   std::vector<log_scan> *out)
{
    std::vector<std::string> names;
    IOStatus s = files->GetChildren(directory, IOOptions(), &names, nullptr);
    for (const std::string &name : names) {
        log_scan found;
        if (!s.ok() || !parse_log_name(name, &found.number))
            continue;
        s = scan_log(files, directory + "/" + name, &found);
        out->push_back(found);
    }
    std::sort(out->begin(), out->end(),
              [](const log_scan &a, const log_scan &b) { return a.number < b.number; });
    return s;
}

static bool is_recorded(const synced_record &recorded, uint64_t wanted)
{
    return std::any_of(recorded.logs.begin(), recorded.logs.end(),
                       [wanted](const synced_log &each) { return each.number == wanted; });
}

/* A later one that is recorded. A log that is not, since it is about to be deleted, has only
 * numbers that come before all of those. */
static const log_scan *later_twin(const log_scan &scan, const synced_record &recorded,
                                  const std::vector<log_scan> &scans)
{
    if (is_recorded(recorded, scan.number))
        return nullptr;
    for (const log_scan &each : scans)
        if (each.number > scan.number && each.first != 0 && each.first < scan.next &&
            is_recorded(recorded, each.number))
            return &each;
    return nullptr;
}

void find_twins(const synced_record &recorded, std::vector<log_scan> *scans)
{
    const log_scan *before = nullptr;
    for (log_scan &scan : *scans) {
        if (scan.first == 0)
            continue;
        const log_scan *twin = later_twin(scan, recorded, *scans);
        if (before != nullptr && scan.first < before->next)
            twin = before;
        if (twin == nullptr) {
            before = &scan;
            continue;
        }
        scan.twin = twin->number;
        scan.is_damaged = true;
        scan.end = 0;
        scan.damage = 0;
    }
}

std::string log_name(uint64_t number)
{
    char name[32];
    snprintf(name, sizeof name, "%06llu.log", (unsigned long long)number);
    return name;
}

bool parse_log_name(const std::string &name, uint64_t *number)
{
    if (!is_log_name(name))
        return false;
    *number = strtoull(name.c_str(), nullptr, 10);
    return log_name(*number) == name;
}
