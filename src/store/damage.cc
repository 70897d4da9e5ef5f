/* Damaged tables: which keys they take out of service, and how the store lives with them.
 *
 * What meets damage notes it: a read, a compaction, keyspace_verify. A read waits for the outcome,
 * some seconds at most, since its error is to say which keys. The watch's thread then looks at the
 * table, block by block (table_blocks.cc), and
 *
 *     closes       the range of each damaged block, or that of the file if the file as a whole
 *                   cannot be read
 *     tells        the store's owner, which remembers it: from here on a start closes it again
 *     keeps        the file under a second name, as it is
 *     stands in    for what is damaged (stand_in.cc): the rest of the file can be read, and
 *                   RocksDB compacts the file away like any other. For what the disk does not read
 *                   only if it still does not after some time
 *
 * Invariants
 *  1. A closed range is closed over all levels: the damaged table may have deleted or overwritten
 *     what older ones hold, and that is not known any more. So no read that meets the range is
 *     answered (read.cc asks after each), whatever other tables have; nor is one that began before
 *     the range was opened again and looks at what was there then.
 *  2. What is damaged has a stand-in only once the range is remembered: a compaction that reads
 *     through it takes the file away, and nothing else knows that keys are missing.
 *  3. A keyspace is not compacted while a damaged table of it has no stand-in for good: because the
 *     range could not be remembered, because the disk may read the table again, or because it
 *     proved good again, which a repair is to find out. Nor if compactions fail all the same, as
 *     they do when RocksDB goes on with what it remembers of a table that was cut off meanwhile:
 *     then a start helps, and now and then they are tried again.
 *  4. A compaction that met damage harms nothing: RocksDB throws away what it wrote. So it is no
 *     reason to fence (listener.cc); a flush that fails is. */
#include "store/keyspaces.h"
#include "store/open_tables.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <pthread.h>

using rocksdb::Slice;

namespace {

/* By the steady clock: how often a file, or all files of a keyspace, are looked at again. */
constexpr std::chrono::seconds AGAIN_FILE(10);
constexpr std::chrono::seconds AGAIN_ALL(600);
constexpr std::chrono::seconds PATIENCE(600); /* store_options.damage_patience_us */

/* How long a reader waits for the words: a table is read in less, unless the disk fails. */
constexpr std::chrono::seconds READER_PATIENCE(5);

/* Compactions that fail although all damage has stand-ins, a second apart: then there are no more.
 */
enum : unsigned { FRUITLESS_MOST = 3 };

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

} // namespace

/* --- the watch --- */

static std::vector<uint64_t> keyspace_ids(store *store)
{
    std::vector<uint64_t> ids;
    std::shared_lock<std::shared_mutex> lock(store->mutex);
    for (const auto &keyspace : store->keyspaces)
        ids.push_back(keyspace->id);
    return ids;
}

damage_watch::damage_watch(struct store *store_, const store_options *options)
    : store(store_), listener(options->on_damage), listener_context(options->damage_context),
      patience(options->damage_patience_us > 0
                   ? std::chrono::microseconds(options->damage_patience_us)
                   : PATIENCE)
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
    done.notify_all();
    if (thread.joinable())
        thread.join();
}

/* Without memory for the note, the next thread that meets the damage notes it. */
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

void damage_watch::note_and_wait(uint64_t keyspace, const std::string &words)
{
    const job met = {keyspace, file_named_in(words)};
    note(met.keyspace, met.file);
    if (!thread.joinable() || thread.get_id() == std::this_thread::get_id())
        return;
    std::unique_lock<std::mutex> lock(mutex);
    done.wait_for(lock, READER_PATIENCE, [&] {
        bool is_under_way = !(met < current) && !(current < met);
        return is_stopping() || (jobs.count(met) == 0 && !is_under_way);
    });
}

void damage_watch::note_failed_compaction(uint64_t keyspace, const std::string &words)
{
    try {
        {
            std::lock_guard<std::mutex> lock(mutex);
            failed[keyspace].count++;
            failed[keyspace].last = std::chrono::steady_clock::now();
        }
        note(keyspace, words);
    } catch (const std::bad_alloc &) {
    }
}

unsigned damage_watch::failed_compactions(uint64_t keyspace)
{
    std::lock_guard<std::mutex> lock(mutex);
    auto found = failed.find(keyspace);
    return found != failed.end() ? found->second.count : 0;
}

/* Forgives failed compactions: damage that was found since may have been the cause. */
void damage_watch::forgive_failures(uint64_t keyspace)
{
    std::lock_guard<std::mutex> lock(mutex);
    failed.erase(keyspace);
}

void damage_watch::forgive_old_failures()
{
    std::lock_guard<std::mutex> lock(mutex);
    auto now = std::chrono::steady_clock::now();
    for (auto each = failed.begin(); each != failed.end();)
        each = now - each->second.last >= patience ? failed.erase(each) : std::next(each);
}

/* Tries again: what could not be read may be readable now, or is given up; failed compactions are
 * repeated. */
void damage_watch::try_again()
{
    for (const job &each : unreadable_for_long())
        look(each, until_stopped());
    forgive_old_failures();
    std::lock_guard<std::mutex> lock(looking);
    for (uint64_t id : keyspace_ids(store)) {
        keyspace *keyspace = store_keyspace_find(store, id);
        if (keyspace != nullptr && keyspace->is_left)
            update_compactions(keyspace);
    }
}

void damage_watch::do_job(const job &job)
{
    bool is_new = is_due(job);
    if (is_new)
        look(job, until_stopped());
    if (is_new || failed_compactions(job.keyspace) >= FRUITLESS_MOST)
        update_compactions(job.keyspace);
}

void damage_watch::run()
{
    std::unique_lock<std::mutex> lock(mutex);
    auto next_try = std::chrono::steady_clock::now() + patience;
    while (!is_stopping()) {
        bool is_time = std::chrono::steady_clock::now() >= next_try;
        if (jobs.empty() && !is_time) {
            wake.wait_until(lock, next_try);
            continue;
        }
        job next = jobs.empty() ? job() : *jobs.begin();
        jobs.erase(next);
        current = next;
        lock.unlock();
        status_ignore(guarded([&] {
            if (next.keyspace != 0)
                do_job(next);
            if (is_time)
                try_again();
            return status_ok();
        }));
        lock.lock();
        current = job();
        done.notify_all();
        next_try = is_time ? std::chrono::steady_clock::now() + patience : next_try;
    }
}

/* False for a file that was looked at just now: damage is met again and again. */
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
            look_at(job.keyspace, file, pacer, CACHED);
}

/* The keyspace's table files; none if there is no such keyspace (any more). */
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

static bool is_being_compacted(const keyspace *keyspace, uint64_t number)
{
    for (const auto &file : tables_of(keyspace))
        if (file.file_number == number)
            return file.being_compacted;
    return false;
}

/* A file that a compaction has replaced meanwhile is missing, and no damage. */
static bool is_still_there(const keyspace *keyspace, uint64_t number)
{
    for (const auto &file : tables_of(keyspace))
        if (file.file_number == number)
            return true;
    return false;
}

static std::string first_of(const bad_block &block, const rocksdb::SstFileMetaData &file)
{
    return std::max(block.from, file.smallestkey);
}

static std::string end_of(const bad_block &block, const rocksdb::SstFileMetaData &file)
{
    std::string end = file.largestkey + '\0';
    return block.to.empty() ? end : std::min(block.to, end);
}

/* Whether what is read now can be read without the block, which it is if newer tables have deleted
 * all of it by ranges. Only of a store that is opened for reading alone and has not been read from:
 * what is in its cache is not what the disk has now. */
static bool is_all_deleted(const keyspace *keyspace, const std::string &from, const std::string &to)
{
    rocksdb::ReadOptions options;
    Slice end(to);
    options.verify_checksums = true;
    options.fill_cache = false;
    options.iterate_upper_bound = &end;
    std::unique_ptr<rocksdb::Iterator> entries(
        keyspace->db->NewIterator(options, keyspace->handle));
    for (entries->Seek(from); entries->Valid(); entries->Next())
        ;
    return entries->status().ok();
}

/* With `looking` held, before anything stands in for the file. */
void damage_watch::find_deleted(const keyspace *keyspace, const rocksdb::SstFileMetaData &file,
                                table_findings *findings)
{
    if (!store->read_only || !findings->whole.empty() ||
        store->stand_ins->find(file.file_number) != nullptr)
        return;
    for (bad_block &block : findings->blocks)
        block.is_deleted = is_all_deleted(keyspace, first_of(block, file), end_of(block, file));
}

/* One that somebody has removed, and that is still open, gets its name back before. */
static status look_at_file(store *store, const rocksdb::SstFileMetaData &file,
                           const table_pacer &pacer, bool is_direct, table_findings *findings)
{
    bring_back_table(store, file.file_number).PermitUncheckedError(); /* then it is missing */
    return look_at_table(store->base_files.get(), file.db_path + file.name, file.size, pacer,
                         is_direct, findings);
}

/* Reading takes long, and nothing is held; the keyspace may be gone afterwards. */
void damage_watch::look_at(uint64_t id, const rocksdb::SstFileMetaData &file,
                           const table_pacer &pacer, enum manner manner)
{
    table_findings findings;
    status s = look_at_file(store, file, pacer, manner == DIRECT, &findings);
    bool is_known = status_is_ok(s);
    status_ignore(s);
    if (!is_known)
        return;
    std::lock_guard<std::mutex> lock(looking);
    keyspace *keyspace = store_keyspace_find(store, id);
    if (keyspace == nullptr || !is_still_there(keyspace, file.file_number)) {
        unreadable.erase({id, file.file_number});
        return;
    }
    find_deleted(keyspace, file, &findings);
    bool is_new = close(keyspace, file, findings);
    tell_news();
    bool is_waited = is_waited_for({id, file.file_number}, findings);
    if (!findings.is_sound())
        stand_in_for(keyspace, file, findings, !is_waited || (manner == GIVING_UP && !is_new));
}

void damage_watch::update_compactions(uint64_t id)
{
    std::lock_guard<std::mutex> lock(looking);
    keyspace *keyspace = store_keyspace_find(store, id);
    if (keyspace != nullptr)
        update_compactions(keyspace);
}

void damage_watch::look_now(uint64_t id, const rocksdb::SstFileMetaData &file)
{
    look_at(id, file, until_stopped(), GIVING_UP);
}

void damage_watch::look_for(uint64_t number)
{
    for (uint64_t id : keyspace_ids(store))
        for (const auto &file : files_of(id))
            if (file.file_number == number)
                look_at(id, file, until_stopped(), CACHED);
}

status damage_watch::look_at_some(uint64_t id, const std::function<bool(uint64_t)> &is_chosen,
                                  const table_pacer &pacer, bool is_direct)
{
    bool has_looked = false;
    for (const auto &file : files_of(id)) {
        if (!pacer(0))
            return status_make(STATUS_CANCELLED, "cancelled");
        if (is_chosen(file.file_number))
            look_at(id, file, pacer, is_direct ? DIRECT : CACHED);
        has_looked = has_looked || is_chosen(file.file_number);
    }
    if (has_looked)
        update_compactions(id);
    return status_ok();
}

status damage_watch::look_at_all(const std::function<bool(uint64_t)> &is_chosen,
                                 const table_pacer &pacer, bool is_direct)
{
    for (uint64_t id : keyspace_ids(store))
        TRY(look_at_some(id, is_chosen, pacer, is_direct));
    return status_ok();
}

/* Fails if a file cannot be looked at, which may be damaged, too. */
status damage_watch::look_at_keyspace(uint64_t id)
{
    for (const auto &file : files_of(id)) {
        table_findings findings;
        TRY(look_at_file(store, file, until_stopped(), false, &findings));
        if (!findings.is_sound())
            look_at(id, file, until_stopped(), CACHED);
    }
    update_compactions(id);
    return status_ok();
}

status keyspace_look_for_damage(keyspace *keyspace)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    return guarded([&] { return keyspace->store->damage.look_at_keyspace(keyspace->id); });
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
        uint64_t id = id_in_name(table.column_family_name);
        for (const auto &file : files_of(id))
            if (file.file_number == table.file_number)
                look_at(id, file, nullptr, CACHED);
    }
}

/* --- with `looking` held --- */

/* `from` and `to` within what the file may hold. */
void damage_watch::close_one(keyspace *keyspace, const rocksdb::SstFileMetaData &file,
                             const bad_block &block, const std::string &why)
{
    std::string name = file.name.substr(file.name.rfind('/') + 1);
    found one = {keyspace, {}};
    one.range = {file.file_number,
                 block.size == 0 ? 0 : block.offset + 1,
                 first_of(block, file),
                 end_of(block, file),
                 "the table file " + name + " is damaged: " + why,
                 false,
                 0,
                 false};
    if (keyspace->closed.add(one.range))
        news.push_back(std::move(one));
}

/* Whether something of it was not closed, or not remembered, before. */
bool damage_watch::close(keyspace *keyspace, const rocksdb::SstFileMetaData &file,
                         const table_findings &findings)
{
    if (findings.is_sound())
        return false;
    status_ignore(let_compact(keyspace, false));
    if (!findings.whole.empty())
        close_one(keyspace, file, {}, findings.whole);
    for (const bad_block &block :
         findings.whole.empty() ? findings.blocks : std::vector<bad_block>())
        close_one(keyspace, file, block,
                  "the block at byte " + std::to_string(block.offset) + " is not what was written" +
                      (block.is_deleted ? "; all that it had was deleted since" : ""));
    return !news.empty();
}

/* Tells news. A range that is told again was not remembered the last time. */
void damage_watch::tell_news()
{
    std::vector<found> told = std::move(news);
    news.clear();
    for (found &one : told) {
        struct store_damage damage = as_told(one.keyspace->id, one.range);
        forgive_failures(one.keyspace->id);
        bool is_safe = store->read_only && listener == nullptr; /* nothing is compacted away */
        if (is_safe || (listener != nullptr && listener(listener_context, &damage)))
            one.keyspace->closed.remember(one.range);
    }
}

/* A second name; what is missing has none. */
bool damage_watch::keep(const rocksdb::SstFileMetaData &file)
{
    std::string path = file.db_path + file.name, kept = path + ".damaged";
    if (store->read_only || store->base_files->FileExists(kept, rocksdb::IOOptions(), nullptr).ok())
        return true;
    rocksdb::IOStatus s = store->base_files->LinkFile(path, kept, rocksdb::IOOptions(), nullptr);
    return s.ok() || s.IsPathNotFound();
}

/* A file that cannot be read is waited for: it may be a loose cable. */
bool damage_watch::is_waited_for(const job &job, const table_findings &findings)
{
    if (!findings.is_unreadable) {
        unreadable.erase(job);
        return false;
    }
    auto now = std::chrono::steady_clock::now();
    return now - unreadable.emplace(job, now).first->second < patience;
}

std::vector<damage_watch::job> damage_watch::unreadable_for_long()
{
    std::lock_guard<std::mutex> lock(looking);
    std::vector<job> out;
    auto now = std::chrono::steady_clock::now();
    for (const auto &each : unreadable)
        if (now - each.second >= patience)
            out.push_back(each.first);
    return out;
}

/* Without one, as without memory, what needs the table fails, around the closed range, too: of a
 * block the row before it, of a table all of the keyspace. So a table has one as soon as no
 * compaction can come to it. */
void damage_watch::stand_in_for(keyspace *keyspace, const rocksdb::SstFileMetaData &file,
                                const table_findings &findings, bool may_give_up)
{
    uint64_t number = file.file_number;
    bool is_for_good = may_give_up && keyspace->closed.remembers(number) && keep(file);
    if (is_for_good && !findings.blocks.empty())
        store->stand_ins->put_blocks(number, findings.blocks);
    if (!findings.whole.empty() && (is_for_good || !is_being_compacted(keyspace, number)))
        status_ignore(
            store->stand_ins->put_table(number, file.size, file.smallestkey, is_for_good));
}

bool is_given_up(const keyspace *keyspace, uint64_t file)
{
    std::shared_ptr<const stand_in> instead = keyspace->store->stand_ins->find(file);
    bool is_for_good = instead == nullptr || instead->is_for_good;
    return is_for_good && keyspace->closed.are_covered(file, instead.get());
}

void damage_watch::update_compactions(keyspace *keyspace)
{
    bool is_let = failed_compactions(keyspace->id) < FRUITLESS_MOST;
    std::vector<uint64_t> damaged = keyspace->closed.files();
    for (const auto &file : tables_of(keyspace))
        if (std::find(damaged.begin(), damaged.end(), file.file_number) != damaged.end())
            is_let = is_let && is_given_up(keyspace, file.file_number);
    status_ignore(let_compact(keyspace, is_let));
}

void damage_watch::opened(keyspace *keyspace)
{
    std::lock_guard<std::mutex> lock(looking);
    forgive_failures(keyspace->id);
    update_compactions(keyspace);
}
