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
 * bytes) and how many entries it has (4), each of which has the next number. These rise, so RocksDB
 * did not write a commit that has former ones again; and it ends the process with an assertion when
 * it meets a key twice with one number. */
#include "store/log_scanner.h"

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

static const uint32_t SUM_DELTA = 0xa282ead8u; /* RocksDB keeps no sum as it is */

uint32_t piece_sum(const char *type_and_payload, size_t size)
{
    uint32_t crc = rocksdb::crc32c::Extend(0, type_and_payload, size);
    return ((crc >> 15) | (crc << 17)) + SUM_DELTA;
}

void record_writer::add(const std::string &record)
{
    size_t done = 0;
    do {
        if (left_in_block() < HEADER)
            text.append(left_in_block(), '\0');
        size_t size = std::min(record.size() - done, left_in_block() - HEADER);
        bool is_first = done == 0, is_last = done + size == record.size();
        piece_type type = is_first ? (is_last ? FULL : FIRST) : (is_last ? LAST : MIDDLE);
        add_piece(type, record.data() + done, size);
        done += size;
    } while (done < record.size());
}

void record_writer::add_piece(piece_type type, const char *payload, size_t size)
{
    std::string summed(1, static_cast<char>(type));
    summed.append(payload, size);
    uint32_t sum = piece_sum(summed.data(), summed.size());
    auto length = static_cast<uint16_t>(size);
    text.append(reinterpret_cast<const char *>(&sum), sizeof sum);
    text.append(reinterpret_cast<const char *>(&length), sizeof length);
    text.append(summed);
}

/* A mark as it stands in the record: RocksDB's tag for log-only data, the size, the letter. */
static const char SYNCED_TAIL[] = {3, 1, LOG_MARK_SYNCED};

enum : size_t { COUNT_AT = 8, COMMIT_HEAD = 12 }; /* what is read of each */

static uint64_t number_at(const Slice &head, size_t from, size_t to)
{
    uint64_t value = 0;
    while (to-- > from)
        value = value << 8 | static_cast<uint8_t>(head[to]);
    return value;
}

void log_scanner::scan(const Slice &block)
{
    size_t offset = 0;
    while (block.size() - offset >= HEADER) {
        piece here;
        size_t size = 0;
        if (read_piece(block, offset, &here)) {
            note_piece(here, found->size + offset);
            size = HEADER + here.payload.size();
        } else {
            note_damage(found->size + offset);
            size = step_over(block, offset);
        }
        if (size == 0)
            break;
        offset += size;
    }
    /* What is less than a header is nothing, unless it ends the log. */
    rest_is_broken = block.size() < BLOCK && offset < block.size();
    found->size += block.size();
}

void log_scanner::finish()
{
    if (rest_is_broken || in_record)
        note_damage(found->end);
    if (in_gap)
        close_gap(std::min(found->size, std::max(found->most, taken_end)), 0);
}

static uint32_t sum_of(const uint8_t *header)
{
    return header[0] | (uint32_t)header[1] << 8 | (uint32_t)header[2] << 16 |
           (uint32_t)header[3] << 24;
}

/* False: it is not whole. */
bool log_scanner::read_piece(const Slice &block, size_t offset, piece *out)
{
    if (block.size() < offset + HEADER)
        return false;
    const uint8_t *header = reinterpret_cast<const uint8_t *>(block.data() + offset);
    size_t size = header[4] | (size_t)header[5] << 8;
    uint8_t type = header[6];
    if (type < FULL || type > LAST || HEADER + size > block.size() - offset)
        return false;
    /* Type and payload lie side by side. */
    if (sum_of(header) != piece_sum(block.data() + offset + HEADER - 1, size + 1))
        return false;
    *out = {static_cast<piece_type>(type), Slice(block.data() + offset + HEADER, size)};
    return true;
}

/* A piece's size, the one thing that its checksum does not cover, by that sum; 0: none fits. A
 * client that writes values cannot know a sum, since it is over the commit's number, too. */
static size_t size_by_sum(const Slice &block, size_t offset)
{
    const char *type = block.data() + offset + HEADER - 1;
    uint32_t turned = sum_of(reinterpret_cast<const uint8_t *>(block.data()) + offset) - SUM_DELTA;
    uint32_t wanted = (turned >> 17) | (turned << 15);
    uint32_t sum = rocksdb::crc32c::Extend(0, type, 1);
    for (size_t size = 1; offset + HEADER + size <= block.size(); size++) {
        sum = rocksdb::crc32c::Extend(sum, type + size, 1);
        if (sum == wanted)
            return size;
    }
    return 0;
}

/* How far it is from a broken piece to the next whole one of the block: its own size tells, or that
 * by its checksum, if that is not what is broken; else it is looked for. 0: there is none, and the
 * next block begins with one. */
size_t log_scanner::step_over(const Slice &block, size_t offset) const
{
    const uint8_t *header = reinterpret_cast<const uint8_t *>(block.data() + offset);
    size_t size = HEADER + (header[4] | (size_t)header[5] << 8);
    piece next_one;
    if (read_piece(block, offset + size, &next_one))
        return size;
    size = HEADER + size_by_sum(block, offset);
    if (size > HEADER && read_piece(block, offset + size, &next_one))
        return size;
    for (size = 1; offset + size + HEADER <= block.size(); size++)
        if (may_come_next(block, offset + size))
            return size;
    return 0;
}

/* Whether a commit begins there, and no bytes of a value that look like one: its number is among
 * the next that come, which no client that writes values knows. */
bool log_scanner::may_come_next(const Slice &block, size_t offset) const
{
    constexpr uint64_t near = 1 << 20;
    piece here;
    if (found->is_manifest || next == 0 || !read_piece(block, offset, &here) ||
        (here.type != FULL && here.type != FIRST) || here.payload.size() < COMMIT_HEAD)
        return false;
    uint64_t number = number_at(here.payload, 0, COUNT_AT);
    return number >= next && number - next < near;
}

void log_scanner::note_damage(uint64_t offset)
{
    in_record = false;
    in_gap = true;
    if (!found->is_damaged)
        found->damage = offset;
    found->is_damaged = true;
}

void log_scanner::note_piece(const piece &here, uint64_t offset)
{
    bool begins = here.type == FULL || here.type == FIRST;
    if (begins == in_record && (in_record || !in_gap))
        note_damage(found->end); /* a record without its end, or an end without its record */
    found->is_proven |= begins && synced_since;
    if (begins)
        begun = offset;
    gather(begins, here.payload);
    if (here.type == FULL || (here.type == LAST && in_record))
        note_commit(here.payload, offset + HEADER + here.payload.size());
    in_record = here.type == FIRST || (here.type == MIDDLE && in_record);
}

void log_scanner::gather(bool begins, const Slice &payload)
{
    if (begins)
        record.clear();
    size_t rest = COMMIT_HEAD - std::min<size_t>(record.size(), COMMIT_HEAD);
    record.append(payload.data(),
                  visit != nullptr ? payload.size() : std::min(payload.size(), rest));
}

/* Whether it has no sequence numbers that the log had before. One without entries has none. */
bool log_scanner::note_sequence()
{
    first = count = 0;
    if (found->is_manifest || record.size() < COMMIT_HEAD)
        return true;
    count = number_at(record, COUNT_AT, COMMIT_HEAD);
    if (count == 0)
        return true;
    first = number_at(record, 0, COUNT_AT);
    return first >= next;
}

void log_scanner::note_commit(const Slice &last_payload, uint64_t end)
{
    bool rises = note_sequence();
    bool is_synced = last_payload.ends_with(Slice(SYNCED_TAIL, sizeof SYNCED_TAIL));
    if (!found->is_damaged && found->below == 0)
        note_damage(0);
    if (!found->is_damaged && !rises) {
        found->twin = found->number;
        note_damage(found->end);
    }
    if (found->is_damaged) {
        synced_since |= is_synced;
        if (rises && found->twin == 0 && end <= found->most && first + count <= found->below)
            note_commit_behind(end);
        return;
    }
    found->end = end;
    found->ends_unsynced = !is_synced;
    if (count > 0 && found->first == 0)
        found->first = first;
    if (count > 0)
        found->next = first + count;
    take(end);
}

void log_scanner::note_commit_behind(uint64_t end)
{
    if (in_gap)
        close_gap(begun, first > next ? first - next : 0);
    found->commits_behind++;
    take(end);
}

void log_scanner::take(uint64_t end)
{
    if (count > 0) {
        next = first + count;
        if (found->first_whole == 0)
            found->first_whole = first;
    }
    taken_end = end;
    found->largest = std::max(found->largest, end - begun);
    if (visit != nullptr)
        visit(record);
}

void log_scanner::close_gap(uint64_t to, uint64_t changes)
{
    in_gap = false;
    if (to > taken_end)
        found->gaps.push_back({taken_end, to, next == 0 ? 0 : changes});
}

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

log_scan bounds_of(const log_scan &scan)
{
    log_scan bounds;
    bounds.number = scan.number;
    bounds.most = scan.most;
    bounds.below = scan.twin != 0 && scan.end == 0 ? 0 : scan.below;
    return bounds;
}

/* How far a log counts: up to the end that a start found, if it has not been written to since. */
static uint64_t recorded_most(const synced_record &recorded, uint64_t number)
{
    for (const synced_log &each : recorded.logs)
        if (each.number == number && each.is_ended)
            return each.length;
    return UINT64_MAX;
}

static IOStatus scan_all(rocksdb::FileSystem *files, const std::string &directory,
                         const synced_record &recorded, std::vector<log_scan> *out)
{
    std::vector<std::string> names;
    IOStatus s = files->GetChildren(directory, IOOptions(), &names, nullptr);
    for (const std::string &name : names) {
        log_scan found;
        if (!s.ok() || !parse_log_name(name, &found.number))
            continue;
        found.most = recorded_most(recorded, found.number);
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

/* In a database sequence numbers rise from commit to commit, over all logs. So a log that has some
 * again is none that RocksDB has left: each of those becomes one that is damaged from its first
 * byte on, with the number of the log that has them, too. Of two, the one that was not recorded. */
static void find_twins(const synced_record &recorded, std::vector<log_scan> *scans)
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

/* Bounds the scans: commits behind something broken that a later log has, too, must not count. */
static IOStatus bound(rocksdb::FileSystem *files, const std::string &directory,
                      std::vector<log_scan> *scans)
{
    uint64_t below = UINT64_MAX;
    IOStatus s;
    for (auto scan = scans->rbegin(); s.ok() && scan != scans->rend(); ++scan) {
        scan->below = below;
        if (scan->is_damaged && scan->twin == 0 && below != UINT64_MAX) {
            log_scan again = bounds_of(*scan);
            s = scan_log(files, directory + "/" + log_name(scan->number), &again);
            *scan = again;
        }
        if (scan->first_whole != 0 && (scan->twin == 0 || scan->end > 0))
            below = std::min(below, scan->first_whole);
    }
    return s;
}

IOStatus scan_logs(rocksdb::FileSystem *files, const std::string &directory,
                   const synced_record &recorded, std::vector<log_scan> *out)
{
    IOStatus s = scan_all(files, directory, recorded, out);
    if (!s.ok())
        return s;
    find_twins(recorded, out);
    return bound(files, directory, out);
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
