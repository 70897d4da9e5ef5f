/* What of a keyspace is out of service: damage.cc says why, and when it ends. */
#include "store/internal.h"

#include <algorithm>

using rocksdb::Slice;

static bool begins_before_end(const Slice &from, const std::string &to)
{
    return to.empty() || from.compare(to) < 0;
}

static status refusal(const closed_ranges::range &range)
{
    if (range.opened == 0)
        return status_make(STATUS_DATA_LOSS, "%s", range.words.c_str());
    return status_make(STATUS_UNAVAILABLE, "%s, until a moment ago: ask again",
                       range.words.c_str());
}

static thread_local bool reads_healed;

bool store_read_healed(bool does)
{
    return std::exchange(reads_healed, does);
}

status closed_ranges::check(const Slice &from, const Slice &to, uint64_t since,
                            bool passes_healed) const
{
    if (!concerns(since))
        return status_ok();
    std::shared_lock<std::shared_mutex> lock(mutex);
    for (const range &one : ranges) {
        bool is_passed = one.opened == 0 ? passes_healed && one.is_healed : one.opened <= since;
        if (!is_passed && begins_before_end(from, one.to) &&
            (to.empty() || to.compare(one.from) > 0))
            return refusal(one);
    }
    return status_ok();
}

status closed_ranges::check(const Slice &from, const Slice &to, uint64_t since) const
{
    return check(from, to, since, reads_healed);
}

status closed_ranges::check_write(const Slice &from, const Slice &to) const
{
    return check(from, to, UINT64_MAX, false);
}

closed_ranges::range *closed_ranges::find(uint64_t file, const Slice &from, const Slice &to)
{
    for (range &one : ranges)
        if (one.opened == 0 && one.file == file && from == one.from && to == one.to)
            return &one;
    return nullptr;
}

bool closed_ranges::add(const range &range)
{
    std::unique_lock<std::shared_mutex> lock(mutex);
    const struct range *known = find(range.file, range.from, range.to);
    if (known != nullptr)
        return !known->is_remembered;
    ranges.push_back(range);
    count.fetch_add(1, std::memory_order_release);
    return true;
}

void closed_ranges::say(const range &range)
{
    std::unique_lock<std::shared_mutex> lock(mutex);
    struct range *known = find(range.file, range.from, range.to);
    if (known == nullptr)
        return;
    known->words = range.words;
    known->is_remembered = known->is_remembered || range.is_remembered;
}

static bool lies_in(const closed_ranges::range &inner, const Slice &from, const Slice &to)
{
    return from.compare(inner.from) <= 0 &&
           (to.empty() || (!inner.to.empty() && to.compare(inner.to) >= 0));
}

void closed_ranges::open(uint64_t file, const Slice &from, const Slice &to, uint64_t opening)
{
    std::unique_lock<std::shared_mutex> lock(mutex);
    newest_opening.store(opening, std::memory_order_release);
    for (range &one : ranges)
        if (one.opened == 0 && (file == 0 ? lies_in(one, from, to)
                                          : one.file == file && from == one.from && to == one.to)) {
            one.opened = opening;
            count.fetch_sub(1, std::memory_order_release);
        }
}

void closed_ranges::note_healed(const Slice &from, const Slice &to)
{
    std::unique_lock<std::shared_mutex> lock(mutex);
    for (range &one : ranges)
        one.is_healed = one.is_healed || (one.opened == 0 && lies_in(one, from, to));
}

void closed_ranges::remember(const range &range)
{
    std::unique_lock<std::shared_mutex> lock(mutex);
    struct range *known = find(range.file, range.from, range.to);
    if (known != nullptr)
        known->is_remembered = true;
}

bool closed_ranges::remembers(uint64_t file) const
{
    std::shared_lock<std::shared_mutex> lock(mutex);
    return std::none_of(ranges.begin(), ranges.end(), [&](const range &one) {
        return one.opened == 0 && (file == 0 || one.file == file) && !one.is_remembered;
    });
}

bool closed_ranges::lie_in(uint64_t file, const Slice &from, const Slice &to) const
{
    std::shared_lock<std::shared_mutex> lock(mutex);
    return std::all_of(ranges.begin(), ranges.end(), [&](const range &one) {
        return one.opened != 0 || one.file != file || lies_in(one, from, to);
    });
}

bool closed_ranges::are_covered(uint64_t file, const stand_in *instead) const
{
    std::shared_lock<std::shared_mutex> lock(mutex);
    return std::all_of(ranges.begin(), ranges.end(), [&](const range &one) {
        bool is_covered =
            instead != nullptr && one.is_remembered &&
            (instead->is_table() || (one.block != 0 && instead->has_block(one.block - 1)));
        return one.opened != 0 || one.file != file || is_covered;
    });
}

std::vector<uint64_t> closed_ranges::files() const
{
    std::shared_lock<std::shared_mutex> lock(mutex);
    std::vector<uint64_t> numbers;
    for (const range &one : ranges)
        if (one.opened == 0)
            numbers.push_back(one.file);
    return numbers;
}

std::vector<closed_ranges::range> closed_ranges::all() const
{
    std::shared_lock<std::shared_mutex> lock(mutex);
    std::vector<range> out;
    std::copy_if(ranges.begin(), ranges.end(), std::back_inserter(out),
                 [](const range &one) { return one.opened == 0; });
    return out;
}

/* Writers ask for the present state: an opening since some read does not matter. */
status keyspace_check_open(keyspace *keyspace, bytes from, bytes to)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    return keyspace->closed.check_write(to_slice(from), to_slice(to));
}

bool keyspace_has_damage(const keyspace *keyspace)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    return keyspace->closed.any();
}

struct store_damage as_told(uint64_t keyspace, const closed_ranges::range &range)
{
    struct store_damage damage = {};
    damage.keyspace_id = keyspace;
    damage.file = range.file;
    damage.offset = range.block == 0 ? 0 : range.block - 1;
    damage.is_whole = range.block == 0;
    damage.from = from_slice(range.from);
    damage.to = from_slice(range.to);
    damage.what = range.words.c_str();
    damage.is_remembered = range.is_remembered;
    return damage;
}

status keyspace_list_closed(keyspace *keyspace,
                            status (*visit)(void *context, const struct store_damage *range),
                            void *context)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    return guarded([&] {
        for (const closed_ranges::range &range : keyspace->closed.all()) {
            struct store_damage damage = as_told(keyspace->id, range);
            TRY(visit(context, &damage));
        }
        return status_ok();
    });
}

static std::string to_string(bytes b)
{
    return to_slice(b).ToString();
}

/* Whether RocksDB may start compactions of it by itself. Of old data it may not, ever; of a store
 * that is fenced it does not, and the manifest is not to be touched. */
status let_compact(keyspace *keyspace, bool is_let)
{
    const store *store = keyspace->store;
    std::lock_guard<std::mutex> lock(keyspace->compacting);
    if (store->read_only || store->no_compactions || keyspace->kind == KEYSPACE_LOG ||
        store->trouble.is_fenced() || keyspace->is_left != is_let)
        return status_ok();
    keyspace->is_left = !is_let;
    interrupt_compactions(keyspace);
    status s = status_from(keyspace->db->SetOptions(
        keyspace->handle, {{"disable_auto_compactions", is_let ? "false" : "true"}}));
    if (!status_is_ok(s)) {
        keyspace->is_left = is_let;
        interrupt_compactions(keyspace);
    }
    return s;
}

status keyspace_close_range(keyspace *keyspace, const struct store_damage *damage)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    return guarded([&] {
        closed_ranges::range range = {damage->file,
                                      damage->is_whole ? 0 : damage->offset + 1,
                                      to_string(damage->from),
                                      to_string(damage->to),
                                      damage->what,
                                      damage->is_remembered,
                                      0,
                                      false};
        keyspace->closed.add(range);
        keyspace->closed.say(range);
        keyspace->store->damage.note(keyspace->id, damage->file); /* it wants a stand-in */
        return let_compact(keyspace, false);
    });
}
