/* See repair_old_data.h.
 *
 * The store is made beside the old one, and opened as a server opens it, so that the catalog is put
 * right (cluster/salvage.h); then it takes the old one's place. Up to there nothing of the old one
 * has changed, and a repair that ends is begun again; from there on it is gone on with. */
#include "cmd/repair/repair_old_data.h"

#include "row/fold.h"
#include "server/offline_cluster.h"

#include <stdio.h>

enum { CACHE_BYTES = 64 << 20, WRITE_BUFFER_BYTES = 64 << 20 };

static status make_store(const struct repair_old_data_options *options)
{
    struct offline_cluster offline;
    TRY(offline_cluster_open(options->directory, "repair", clock_system(), options->log, true,
                             &offline));
    const char *words = cluster_old_data(offline.cluster);
    if (words != NULL)
        printf("%s\n", words);
    offline_cluster_close(&offline);
    return status_ok();
}

static status accept(const struct repair_old_data_options *options, enum store_old_data_state state)
{
    if (state == STORE_OLD_DATA_NEEDED)
        TRY(make_store(options));
    TRY(store_accept_old_data(options->directory));
    printf("%s: what its table files had is taken for true; it may show deleted data. What was "
           "there before is in %s/replaced\n",
           options->directory, options->directory);
    return status_ok();
}

static status decide(const struct repair_old_data_options *options, enum store_old_data_state state,
                     const char *words, bool *is_left)
{
    if (state == STORE_OLD_DATA_NONE)
        return status_ok();
    if (!options->is_accepted)
        return status_make(STATUS_DATA_LOSS, "%s", words);
    if (options->in_place)
        return accept(options, state);
    *is_left = true;
    printf("would take for true: %s\n", words);
    return status_ok();
}

status repair_old_data(const struct repair_old_data_options *options, bool *is_left)
{
    const struct store_options how = {.directory = options->directory,
                                      .fold = &row_fold,
                                      .log = options->log,
                                      .cache_bytes = CACHE_BYTES,
                                      .write_buffer_bytes = WRITE_BUFFER_BYTES};
    enum store_old_data_state state;
    struct buffer words = {0};
    *is_left = false;
    bool wants_words = !options->in_place || !options->is_accepted; /* which take a while */
    status s = store_look_for_old_data(&how, wants_words ? &words : NULL, &state);
    buffer_append_byte(&words, '\0');
    if (status_is_ok(s) && words.failed)
        s = status_out_of_memory();
    if (status_is_ok(s))
        s = decide(options, state, (const char *)words.data, is_left);
    buffer_free(&words);
    return s;
}
