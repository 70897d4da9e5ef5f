/* Damaged tables: which keys they take out of service, and how the store lives with them.
 *
 * Whoever meets damage notes it: a read, a compaction, keyspace_verify. The watch's thread then
 * looks at the table, block by block (table_blocks.cc), and closes the range of each damaged block,
 * or that of the file if the file as a whole cannot be read.
 *
 * Invariants
 *  1. A closed range is closed over all levels: the damaged table may have deleted or overwritten
 *     what older ones hold, and nobody knows any more. So no read that meets the range is answered
 *     (read.cc asks after each), whatever other tables have.
 *  2. A keyspace with a damaged table is not compacted: what RocksDB starts by itself is turned
 *     off for it, and keyspace_compact leaves it alone. The damaged file stays as it is: it may
 *     prove good again, when it was the memory or a cable that failed.
 *  3. A compaction that met damage harms nothing: RocksDB throws away what it wrote. So it is no
 *     reason to fence (listener.cc); a flush that fails is. */
#include "store/internal.h"

#include <algorithm>
#include <cstdlib>

#include <pthread.h>

using rocksdb::Slice;

namespace {

/* By the steady clock: how often a file, or all files of a keyspace, are looked at again. */
constexpr std::chrono::seconds AGAIN_FILE(10);
constexpr std::chrono::seconds AGAIN_ALL(600);

/* "… in /a/b/000012.sst offset …": 12; 0 if there is none. RocksDB names a table that is missing by
 * its former suffix, too. */
uint64_t file_named_in(const std::string &words)
{
    size_t dot = std::min(words.find(".sst"), words.find(".ldb"));
    if (dot == std::string::npos)
        return 0;
    size_t begin = dot;
    while (begin > 0 && words[begin - 1] >= '0' && words[begin - 1] <= '9')
        begin--;
    return strtoull(words.c_str() + begin, nullptr, 10);
}

bool begins_before_end(const Slice &from, const std::string &to)
{
    return to.empty() || from.compare(to) < 0;
}

} // namespace

/* --- what is closed --- */

status closed_ranges::check(const Slice &from, const Slice &to) const
{
    if (!any())
        return status_ok();
    std::shared_lock<std::shared_mutex> lock(mutex);
    for (const range &one : ranges)
        if (begins_before_end(from, one.to) && (to.empty() || to.compare(one.from) > 0))
            return status_make(STATUS_DATA_LOSS, "%s", one.words.c_str());
    return status_ok();
}

bool closed_ranges::add(const range &range, bool replaces_words)
{
    std::unique_lock<std::shared_mutex> lock(mutex);
    for (auto &one : ranges)
        if (one.file == range.file && one.from == range.from && one.to == range.to) {
            one.words = replaces_words ? range.words : one.words;
            return false;
        }
    ranges.push_back(range);
    count.store(ranges.size(), std::memory_order_release);
    return true;
}

void closed_ranges::remove(uint64_t file, const Slice &from, const Slice &to)
{
    std::unique_lock<std::shared_mutex> lock(mutex);
    auto is_within = [&](const range &one) {
        return (file == 0 || file == one.file) && from.compare(one.from) <= 0 &&
               (to.empty() || (!one.to.empty() && to.compare(one.to) >= 0));
    };
    ranges.erase(std::remove_if(ranges.begin(), ranges.end(), is_within), ranges.end());
    count.store(ranges.size(), std::memory_order_release);
}

std::vector<uint64_t> closed_ranges::files() const
{
    std::shared_lock<std::shared_mutex> lock(mutex);
    std::vector<uint64_t> numbers;
    for (const range &one : ranges)
        numbers.push_back(one.file);
    return numbers;
}

status keyspace_check_open(keyspace *keyspace, bytes from, bytes to)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    return keyspace->closed.check(to_slice(from), to_slice(to));
}

bool keyspace_has_damage(const keyspace *keyspace)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    return keyspace->closed.any();
}

static std::string to_string(bytes b)
{
    return to_slice(b).ToString();
}

/* RocksDB starts no compaction of it by itself from now on. */
static status stop_compactions(keyspace *keyspace)
{
    return status_from(
        keyspace->db->SetOptions(keyspace->handle, {{"disable_auto_compactions", "true"}}));
}

status keyspace_close_range(keyspace *keyspace, const struct store_damage *damage)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    return guarded([&] {
        bool is_first = !keyspace->closed.any();
        keyspace->closed.add(
            {damage->file, to_string(damage->from), to_string(damage->to), damage->what}, true);
        keyspace->store->damage.note(keyspace->id, damage->file); /* it wants a stand-in */
        return is_first && !keyspace->store->read_only ? stop_compactions(keyspace) : status_ok();
    });
}

/* --- the watch --- */

damage_watch::damage_watch(struct store *store_, const store_options *options)
    : store(store_), listener(options->on_damage), listener_context(options->damage_context)
{
}

damage_watch::~damage_watch()
{
    stop();
}

void damage_watch::start()
{
    thread = std::thread([this] { run(); });
    pthread_setname_np(thread.native_handle(), "damage");
}

void damage_watch::stop()
{
    {
        std::lock_guard<std::mutex> lock(mutex);
        stopping = true;
    }
    wake.notify_all();
    if (thread.joinable())
        thread.join();
}

/* Without memory for the note, the next one who meets the damage notes it. */
void damage_watch::note(uint64_t keyspace, uint64_t file)
{
    try {
        std::lock_guard<std::mutex> lock(mutex);
        jobs.insert({keyspace, file});
        wake.notify_all();
    } catch (const std::bad_alloc &) {
    }
}

void damage_watch::note(uint64_t keyspace, const std::string &words)
{
    note(keyspace, file_named_in(words));
}

void damage_watch::run()
{
    std::unique_lock<std::mutex> lock(mutex);
    while (!is_stopping()) {
        if (jobs.empty()) {
            wake.wait(lock);
            continue;
        }
        job next = *jobs.begin();
        jobs.erase(jobs.begin());
        lock.unlock();
        status_ignore(guarded([&] {
            if (is_due(next))
                look(next, until_stopped());
            return status_ok();
        }));
        lock.lock();
    }
}

/* What was looked at just now has nothing new to tell: damage is met again and again. */
bool damage_watch::is_due(const job &job)
{
    auto now = std::chrono::steady_clock::now();
    auto found = looked.find(job);
    auto again = job.file == 0 ? AGAIN_ALL : AGAIN_FILE;
    if (found != looked.end() && now - found->second < again)
        return false;
    looked[job] = now;
    return true;
}

table_pacer damage_watch::until_stopped() const
{
    return [this](uint64_t) { return !is_stopping(); };
}

void damage_watch::look(const job &job, const table_pacer &pacer)
{
    for (const auto &file : files_of(job.keyspace))
        if (job.file == 0 || job.file == file.file_number)
            look_at(job.keyspace, file, pacer, false);
}

/* None, if there is no such keyspace (any more). */
std::vector<rocksdb::SstFileMetaData> damage_watch::files_of(uint64_t id)
{
    std::lock_guard<std::mutex> lock(looking);
    keyspace *keyspace = store_keyspace_find(store, id);
    return keyspace == nullptr ? std::vector<rocksdb::SstFileMetaData>() : tables_of(keyspace);
}

std::vector<rocksdb::SstFileMetaData> tables_of(const keyspace *keyspace)
{
    std::vector<rocksdb::SstFileMetaData> out;
    rocksdb::ColumnFamilyMetaData tables;
    keyspace->db->GetColumnFamilyMetaData(keyspace->handle, &tables);
    for (const auto &level : tables.levels)
        out.insert(out.end(), level.files.begin(), level.files.end());
    return out;
}

/* A file that a compaction has replaced meanwhile is missing, and no damage. */
static bool is_still_there(const keyspace *keyspace, uint64_t number)
{
    for (const auto &file : tables_of(keyspace))
        if (file.file_number == number)
            return true;
    return false;
}

/* Reading takes long, and nothing is held; the keyspace may be gone afterwards. */
void damage_watch::look_at(uint64_t id, const rocksdb::SstFileMetaData &file,
                           const table_pacer &pacer, bool is_direct)
{
    table_findings findings;
    status s = look_at_table(store->base_files.get(), file.db_path + file.name, file.size, pacer,
                             is_direct, &findings);
    bool is_known = status_is_ok(s);
    status_ignore(s);
    std::lock_guard<std::mutex> lock(looking);
    keyspace *keyspace = is_known ? store_keyspace_find(store, id) : nullptr;
    if (keyspace == nullptr || !is_still_there(keyspace, file.file_number))
        return;
    close(keyspace, file, findings);
    tell_news();
}

void damage_watch::look_now(uint64_t id, const rocksdb::SstFileMetaData &file)
{
    look_at(id, file, until_stopped(), false);
}

status damage_watch::look_at_all(const std::function<bool(uint64_t)> &is_chosen,
                                 const table_pacer &pacer, bool is_direct)
{
    std::vector<uint64_t> ids;
    {
        std::shared_lock<std::shared_mutex> lock(store->mutex);
        for (const auto &keyspace : store->keyspaces)
            ids.push_back(keyspace->id);
    }
    for (uint64_t id : ids)
        for (const auto &file : files_of(id)) {
            if (!pacer(0))
                return status_make(STATUS_CANCELLED, "cancelled");
            if (is_chosen(file.file_number))
                look_at(id, file, pacer, is_direct);
        }
    return status_ok();
}

static table_pacer pace_by(const store_pacer *pacer)
{
    return [pacer](uint64_t bytes) { return pacer->go_on(pacer->context, bytes); };
}

status store_look_for_damage(store *store, const store_pacer *pacer)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    return guarded([&] {
        return store->damage.look_at_all([](uint64_t) { return true; }, pace_by(pacer), false);
    });
}

/* Numbers that follow each other have turns that are far apart. */
static bool has_turn(const struct store_turn *turn, uint64_t file)
{
    constexpr uint64_t SPREAD = 0x9e3779b97f4a7c15;
    int64_t phase = static_cast<int64_t>((file * SPREAD >> 1) % (uint64_t)turn->period_us);
    auto turns_until = [&](int64_t us) { return (us - phase) / turn->period_us; };
    return turns_until(turn->to_us) > turns_until(turn->from_us);
}

status store_scrub(store *store, const struct store_turn *turn, const store_pacer *pacer)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    return guarded([&] {
        return store->damage.look_at_all([turn](uint64_t file) { return has_turn(turn, file); },
                                         pace_by(pacer), true);
    });
}

void damage_watch::see_at_open(const std::vector<rocksdb::LiveFileMetaData> &tables)
{
    for (const rocksdb::LiveFileMetaData &table : tables) {
        uint64_t id = strtoull(table.column_family_name.c_str(), nullptr, 10);
        for (const auto &file : files_of(id))
            if (file.file_number == table.file_number)
                look_at(id, file, nullptr, false);
    }
}

/* --- with `looking` held --- */

/* `from` and `to` within what the file may hold. */
void damage_watch::close_one(keyspace *keyspace, const rocksdb::SstFileMetaData &file,
                             const bad_block &block, const std::string &why)
{
    std::string name = file.name.substr(file.name.rfind('/') + 1);
    found one = {keyspace->id, block.size == 0, block.offset, {}};
    one.range = {file.file_number, std::max(block.from, file.smallestkey), file.largestkey + '\0',
                 "the table file " + name + " is damaged: " + why};
    if (!block.to.empty())
        one.range.to = std::min(block.to, one.range.to);
    if (keyspace->closed.add(one.range, false))
        news.push_back(std::move(one));
}

/* First closed, then replaced: nobody may read through the stand-in what is not closed. */
void damage_watch::close_whole(keyspace *keyspace, const rocksdb::SstFileMetaData &file,
                               const std::string &why)
{
    close_one(keyspace, file, {}, why);
    /* Without one, what needs the table fails, around the closed range, too. */
    status_ignore(store->stand_ins->put_table(file.file_number, file.size, file.smallestkey));
}

void damage_watch::close(keyspace *keyspace, const rocksdb::SstFileMetaData &file,
                         const table_findings &findings)
{
    bool was_sound = !keyspace->closed.any();
    if (!findings.whole.empty())
        close_whole(keyspace, file, findings.whole);
    else
        for (const bad_block &block : findings.blocks)
            close_one(keyspace, file, block,
                      "the block at byte " + std::to_string(block.offset) +
                          " is not what was written");
    if (was_sound && keyspace->closed.any() && !store->read_only)
        status_ignore(stop_compactions(keyspace));
    /* Reads of the key before a block go on into it, in case that has more of it. */
    if (!findings.blocks.empty())
        store->stand_ins->put_blocks(file.file_number, findings.blocks);
}

void damage_watch::tell_news()
{
    for (const found &one : news) {
        struct store_damage damage = {};
        damage.keyspace_id = one.keyspace;
        damage.file = one.range.file;
        damage.offset = one.offset;
        damage.is_whole = one.is_whole;
        damage.from = from_slice(one.range.from);
        damage.to = from_slice(one.range.to);
        damage.what = one.range.words.c_str();
        if (listener != nullptr)
            listener(listener_context, &damage);
    }
    news.clear();
}
