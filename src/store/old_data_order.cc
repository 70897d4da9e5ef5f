/* In which order tables count whose levels are not known.
 *
 * RocksDB believes that of two tables that may have the same key the one in the upper level has the
 * newer entry: a get looks no further, and a range that is deleted in the upper one hides all in
 * the lower one. An iterator compares sequence numbers, but not with those of deleted ranges; a
 * compaction compares all.
 *
 * Tables are put one upon the other by their greatest sequence number. That is right where their
 * sequence numbers do not interleave. Where they do, gets do not go by tables (read.cc); and where
 * it matters to what is deleted by ranges, the family is compacted before the first read.
 *
 * Bounds. A compaction that ends a table writes all of a deleted range into it, also what is beyond
 * its last key, and the manifest says that the table ends before the next one. Without it a range
 * may reach over rows that were written after it and now lie, without sequence numbers, at the
 * bottom, and would hide them. So what a table deletes beyond its keys ends where there is a table
 * that is younger than itself (or one that has the same range: they were made together) and may
 * have older sequence numbers. Deleted rows may be shown for it; no others are hidden. */
#include "store/old_data.h"

#include <algorithm>

using rocksdb::Slice;

namespace {

enum : uint64_t { SEQUENCE_MOST = (uint64_t(1) << 56) - 1, RANGE_DELETION = 0xf };
enum : size_t { TAIL = 8 };
enum : int { LOWEST_LEVEL = STORE_LEVELS - 1 };

Slice user_key(const std::string &key)
{
    return Slice(key.data(), key.size() - TAIL);
}

std::string with_tail(const Slice &key, uint64_t sequence, uint64_t kind)
{
    uint64_t packed = sequence << 8 | kind;
    return key.ToString() + std::string(reinterpret_cast<const char *>(&packed), TAIL);
}

/* A table's last key is in it, except an end of a deleted range. */
bool ends_before_last(const found_table &table)
{
    return table.largest == with_tail(user_key(table.largest), SEQUENCE_MOST, RANGE_DELETION);
}

bool ends_before(const found_table &table, const Slice &key)
{
    int order = user_key(table.largest).compare(key);
    return order < 0 || (order == 0 && ends_before_last(table));
}

bool overlap(const found_table &a, const found_table &b)
{
    return !ends_before(a, user_key(b.smallest)) && !ends_before(b, user_key(a.smallest));
}

/* Older ones first. */
bool is_older(const found_table &a, const found_table &b)
{
    if (a.greatest != b.greatest)
        return a.greatest < b.greatest;
    return a.least != b.least ? a.least < b.least : a.number < b.number;
}

/* --- what does not count ---
 *
 * Keys lose their sequence numbers at the bottom, where tables do not overlap. So of two that do,
 * and have such keys both, the one with the lesser number went into the making of the other, which
 * has replaced it; or a kill cut the making short, and all that it was made of is still there.
 * Both must not count: of equal keys without numbers it is not known which is the newer one, and an
 * iterator of RocksDB's that comes to the second aborts. */

bool is_made_of(const found_table &made, const found_table &table)
{
    const table_summary &a = table.summary, &b = made.summary;
    return made.number > table.number && a.has_keys && b.has_keys && a.least_sequence == 0 &&
           b.least_sequence == 0 && user_key(a.smallest).compare(user_key(b.largest)) <= 0 &&
           user_key(b.smallest).compare(user_key(a.largest)) <= 0;
}

using made_tables = std::vector<found_table *>;

/* Whether `table` has more behind all that was made of it, and a later table has no end. */
bool is_cut_short(const made_tables &made, const found_table &table, uint64_t unfinished)
{
    return std::all_of(made.begin(), made.end(), [&](const found_table *each) {
        return each->number < unfinished &&
               user_key(each->summary.largest).compare(user_key(table.summary.largest)) < 0;
    });
}

/* The tables before it, which are newer, are decided already. */
void resolve_replaced(std::vector<found_table> *tables, size_t at, uint64_t unfinished)
{
    made_tables made;
    found_table *table = &(*tables)[at];
    for (size_t i = 0; i < at; i++)
        if (!(*tables)[i].is_left_out && is_made_of((*tables)[i], *table))
            made.push_back(&(*tables)[i]);
    table->is_left_out = !made.empty() && !is_cut_short(made, *table, unfinished);
    for (found_table *each : made)
        each->is_left_out = !table->is_left_out;
}

/* --- bounds --- */

/* By where they begin, as they are in a table, and then by their sequence numbers. */
bool comes_before(const deleted_range &a, const deleted_range &b)
{
    int order = a.from.compare(b.from);
    return order != 0 ? order < 0 : a.sequence < b.sequence;
}

/* Both have them sorted. */
bool share_deletion(const found_table &a, const found_table &b)
{
    auto at = a.summary.deleted.begin(), other = b.summary.deleted.begin();
    while (at != a.summary.deleted.end() && other != b.summary.deleted.end()) {
        if (*at == *other)
            return true;
        comes_before(*at, *other) ? ++at : ++other;
    }
    return false;
}

/* Whether what `table` deletes beyond its keys must not reach into `other`. */
bool keeps_out(const found_table &table, const found_table &other)
{
    return other.summary.has_keys && other.number != table.number &&
           other.summary.least_sequence < table.newest_deletion &&
           (other.number > table.number || share_deletion(table, other));
}

/* The keys that the table deletes, from end to end. */
void find_deleted_bounds(const found_table &table, std::string *from, std::string *to)
{
    *from = table.summary.deleted[0].from;
    for (const deleted_range &each : table.summary.deleted) {
        *from = std::min(*from, each.from);
        *to = std::max(*to, each.to);
    }
}

void bound_below(const found_family &family, found_table *table, std::string from)
{
    const Slice first = user_key(table->summary.smallest);
    for (const found_table &other : family.tables) {
        if (!keeps_out(*table, other) || user_key(other.summary.smallest).compare(first) >= 0)
            continue;
        from = std::max(from, user_key(other.summary.largest).ToString() + '\0');
    }
    if (Slice(from).compare(first) < 0)
        table->smallest = with_tail(from, SEQUENCE_MOST, RANGE_DELETION);
}

void bound_above(const found_family &family, found_table *table, std::string to)
{
    const Slice last = user_key(table->summary.largest);
    for (const found_table &other : family.tables) {
        if (!keeps_out(*table, other) || user_key(other.summary.largest).compare(last) <= 0)
            continue;
        to = std::min(to, user_key(other.summary.smallest).ToString());
    }
    if (Slice(to).compare(last) > 0)
        table->largest = with_tail(to, SEQUENCE_MOST, RANGE_DELETION);
}

void bound(const found_family &family, found_table *table)
{
    std::string from, to;
    table->smallest = table->summary.smallest;
    table->largest = table->summary.largest;
    if (table->summary.deleted.empty())
        return;
    find_deleted_bounds(*table, &from, &to);
    if (table->summary.has_keys) {
        bound_below(family, table, from);
        bound_above(family, table, to);
    } else {
        table->smallest = with_tail(from, SEQUENCE_MOST, RANGE_DELETION);
        table->largest = with_tail(to, SEQUENCE_MOST, RANGE_DELETION);
    }
}

/* --- whether the order tells --- */

/* Whether the range of `deleting`, as far as it goes, reaches keys of `keys`. */
bool reaches(const found_table &deleting, const deleted_range &range, const found_table &keys)
{
    if (!keys.summary.has_keys || !overlap(deleting, keys))
        return false;
    return user_key(keys.summary.largest).compare(range.from) >= 0 &&
           user_key(keys.summary.smallest).compare(range.to) < 0;
}

/* `newer` is put upon `older`: it hides what it deletes, and `older` hides nothing in it. */
bool misleads(const found_table &older, const found_table &newer)
{
    for (const deleted_range &range : newer.summary.deleted)
        if (reaches(newer, range, older) && older.summary.greatest_sequence > range.sequence)
            return true;
    for (const deleted_range &range : older.summary.deleted)
        if (reaches(older, range, newer) && newer.summary.least_sequence < range.sequence)
            return true;
    return false;
}

void judge(found_family *family)
{
    const auto &tables = family->tables;
    for (size_t i = 0; i < tables.size(); i++) {
        for (size_t j = i + 1; j < tables.size(); j++) {
            if (!overlap(tables[i], tables[j]))
                continue;
            family->is_interleaved |= tables[i].greatest >= tables[j].least;
            family->wants_compaction |= misleads(tables[i], tables[j]);
        }
    }
}

/* --- levels --- */

/* Puts each table as low as those below it allow. */
void resolve_levels(found_family *family)
{
    auto &tables = family->tables;
    for (size_t i = 0; i < tables.size(); i++) {
        int level = LOWEST_LEVEL;
        for (size_t j = 0; j < i; j++)
            if (overlap(tables[i], tables[j]))
                level = std::min(level, tables[j].level - 1);
        tables[i].level = std::max(level, 0);
    }
}

/* Of level 0 RocksDB wants that one table's sequence numbers end before the next one's begin, or
 * are one number, which rises from table to table. Those without any, which were taken in or have
 * been at the bottom, have 0 and keep it. */
void number_level0(found_family *family)
{
    uint64_t next = 1;
    for (found_table &table : family->tables)
        if (table.level == 0 && table.greatest > 0)
            table.least = table.greatest = next++;
}

bool is_level0_in_order(const found_family &family)
{
    const found_table *before = nullptr;
    for (const found_table &table : family.tables) {
        if (table.level > 0)
            continue;
        if (before != nullptr && before->greatest >= table.least)
            return false;
        before = &table;
    }
    return true;
}

void note_sequences(found_table *table)
{
    auto &deleted = table->summary.deleted;
    std::sort(deleted.begin(), deleted.end(), comes_before);
    for (const deleted_range &each : deleted)
        table->newest_deletion = std::max(table->newest_deletion, each.sequence);
    table->greatest = std::max(table->summary.greatest_sequence, table->newest_deletion);
    table->least = table->summary.has_keys ? table->summary.least_sequence : table->greatest;
    for (const deleted_range &each : deleted)
        table->least = std::min(table->least, each.sequence);
    table->least = std::min(table->least, table->greatest); /* all of it is unread */
}

} // namespace

void leave_out_replaced(found_family *family, uint64_t unfinished, std::vector<uint64_t> *left_out)
{
    auto &tables = family->tables;
    std::sort(tables.begin(), tables.end(),
              [](const found_table &a, const found_table &b) { return a.number > b.number; });
    for (size_t i = 0; i < tables.size(); i++)
        resolve_replaced(&tables, i, unfinished);
    for (const found_table &table : tables)
        if (table.is_left_out)
            left_out->push_back(table.number);
    tables.erase(std::remove_if(tables.begin(), tables.end(),
                                [](const found_table &table) { return table.is_left_out; }),
                 tables.end());
}

void order_tables(found_family *family, bool is_exact)
{
    for (found_table &table : family->tables)
        note_sequences(&table);
    std::sort(family->tables.begin(), family->tables.end(), is_older);
    for (found_table &table : family->tables)
        bound(*family, &table);
    judge(family);
    family->wants_compaction |= is_exact && family->is_interleaved;
    if (!family->wants_compaction)
        resolve_levels(family);
    if (family->wants_compaction || !is_level0_in_order(*family))
        number_level0(family);
}
