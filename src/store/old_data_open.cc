/* Opening old data, and what is asked of it: see old_data.h. */
#include "store/old_data.h"

#include <algorithm>
#include <cstring>
#include <unistd.h>

/* Over all levels, so that what is deleted by ranges hides what is older, and nothing else. */
static status compact_all(keyspace *keyspace)
{
    rocksdb::CompactRangeOptions options;
    options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
    return status_from(keyspace->db->CompactRange(options, keyspace->handle, nullptr, nullptr));
}

/* A damaged table cannot be compacted. What is accepted goes without what was in it, as by a repair
 * of the keyspace; what is only served stays, and may lack rows that a deleted range reaches. */
static status accept_damaged(store *store, keyspace *keyspace, bool is_accepted, status trouble)
{
    if (trouble.code != STATUS_DATA_LOSS)
        return trouble;
    store->old_data += "; the tables of keyspace " + std::to_string(keyspace->id) +
                       " cannot be put in order: " + words_of(trouble);
    return is_accepted ? keyspace_heal(keyspace, bytes_of(""), bytes_of("")) : status_ok();
}

static status restore_order(store *store, const old_data &found, bool is_accepted)
{
    for (const found_family &family : found.families) {
        keyspace *keyspace = store_keyspace_find(store, family.keyspace.id);
        if (!family.wants_compaction || keyspace == nullptr)
            continue;
        status s = compact_all(keyspace);
        if (!status_is_ok(s))
            TRY(accept_damaged(store, keyspace, is_accepted, s));
    }
    return status_ok();
}

static status read_record(const store *origin, synced_record *out, bool *is_there)
{
    synced_file file;
    file.set_place(origin->base_files.get(), origin->directory);
    status s = file.read(out);
    *is_there = status_is_ok(s);
    if (s.code != STATUS_NOT_FOUND && s.code != STATUS_DATA_LOSS)
        return s;
    status_free(s);
    return status_ok();
}

static status find(const store *origin, bool is_exact, synced_record *recorded, bool *has_record,
                   old_data *out)
{
    TRY(read_record(origin, recorded, has_record));
    TRY(look_for_old_data(origin->base_files.get(), origin->directory, *recorded, out));
    for (found_family &family : out->families)
        order_tables(&family, is_exact);
    return status_ok();
}

static status make(const store *origin, bool is_exact, old_data *found)
{
    synced_record recorded;
    bool has_record = false;
    TRY(find(origin, is_exact, &recorded, &has_record, found));
    return make_old_data(origin->base_files.get(), origin->directory, recorded, has_record, *found);
}

static void tell(const store *store, const store_options *options, const char *what)
{
    const log_field fields[] = {
        {"text", log_field::LOG_FIELD_TEXT, bytes_of(store->old_data.c_str()), 0},
        {nullptr, log_field::LOG_FIELD_END, {nullptr, 0}, 0}};
    log_write(options->log, LOG_ERROR, what, fields);
}

static status open_made(store *store, const store_options *options, const old_data &found)
{
    store->logs->begin(store->files.get(), store->directory);
    TRY(open_directory(store, options));
    TRY(restore_order(store, found, options->accepts_old_data));
    tell(store, options, "the list of tables is lost, and all of them are served");
    return status_ok();
}

static bool let_go(void *, const struct store_damage *)
{
    return true;
}

status open_old_data(const store_options *options, store *origin, store **out)
{
    old_data found;
    tell(origin, options, "the list of tables is lost: all of them are read");
    TRY(make(origin, options->accepts_old_data, &found));
    std::string path = origin->directory + "/" + OLD_DATA_DIRECTORY;
    store_options of_made = *options;
    of_made.directory = path.c_str();
    of_made.no_compactions = true; /* it takes no more space than it has, and its order is known */
    if (options->accepts_old_data)
        of_made.on_damage = let_go; /* no owner remembers yet, and it is gone later */
    auto made =
        std::make_unique<struct store>(&of_made, origin->base_files, origin->longest_sleep_us);
    made->old_data = origin->old_data + (found.words.empty() ? "" : "; ") + found.words;
    made->is_out_of_order =
        std::any_of(found.families.begin(), found.families.end(),
                    [](const found_family &family) { return family.is_interleaved; });
    status s = open_made(made.get(), &of_made, found);
    struct store *opened = made.release();
    if (!status_is_ok(s)) {
        store_close(opened);
        return s;
    }
    opened->origin = origin;
    *out = opened;
    return status_ok();
}

/* --- before it is opened --- */

static status describe(const store *store, struct buffer *words)
{
    synced_record recorded;
    bool has_record = false;
    old_data found;
    TRY(find(store, true, &recorded, &has_record, &found));
    size_t tables = 0;
    for (const found_family &family : found.families)
        tables += family.tables.size();
    buffer_append_format(words, "%zu table files of %zu keyspaces%s%s", tables,
                         found.families.size(), found.words.empty() ? "" : "; ",
                         found.words.c_str());
    return words->failed ? status_out_of_memory() : status_ok();
}

/* As the opening does it, as far as the manifest. */
static status look(store *store, const store_options *options, std::string *why)
{
    directory_state state;
    synced_record recorded;
    bool has_record = false;
    std::string words;
    TRY(directory_examine(store->files.get(), options, &state));
    if (state.format == 0)
        return status_ok();
    TRY(read_record(store, &recorded, &has_record));
    std::string trouble = words_of(check_manifest(store, recorded, false, &words));
    if (store->has_lost_manifest) /* what else is wrong an opening says */
        *why = trouble;
    return status_ok();
}

static status look_for_old_data(const store_options *options, struct buffer *words,
                                enum store_old_data_state *out)
{
    struct store store(options, rocksdb::FileSystem::Default(), UINT64_MAX);
    std::string why;
    status s = check_not_moving(store.files.get(), store.directory);
    *out = status_is_ok(s) ? STORE_OLD_DATA_NONE : STORE_OLD_DATA_BEGUN;
    if (!status_is_ok(s) && words != nullptr)
        buffer_append(words, status_message(s), strlen(status_message(s)));
    status_free(s);
    if (*out == STORE_OLD_DATA_BEGUN)
        return status_ok();
    TRY(look(&store, options, &why));
    if (why.empty())
        return status_ok();
    *out = STORE_OLD_DATA_NEEDED;
    if (words == nullptr)
        return status_ok();
    buffer_append_format(words, "%s. There are ", why.c_str());
    return describe(&store, words);
}

status store_look_for_old_data(const store_options *options, struct buffer *words,
                               enum store_old_data_state *out)
{
    *out = STORE_OLD_DATA_NONE;
    if (access(options->directory, F_OK) != 0)
        return status_ok();
    return guarded([&] {
        store_options salvaging = *options;
        salvaging.salvage = true; /* a FORMAT that is lost as well comes back */
        return look_for_old_data(&salvaging, words, out);
    });
}

/* --- what is asked of it --- */

const char *store_old_data(const store *store)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    return store->old_data.empty() ? nullptr : store->old_data.c_str();
}

void store_seal(store *store, const char *why)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    try {
        store->trouble.seal(why);
    } catch (const std::bad_alloc &) {
        store->trouble.seal(std::string());
    }
}
