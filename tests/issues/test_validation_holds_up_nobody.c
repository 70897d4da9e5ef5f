/* One large transaction held up every commit of its database.
 *
 * Read in the core by somebody who looked for lost writes. An optimistic commit drew its moment,
 * and then looked whether all that its transaction had read was still so: seconds for a query over
 * millions of rows. Moments pass in their order, so all commits behind it waited, and the present
 * stood still. It looks first now, watches what is written meanwhile, and has the moment drawn only
 * while it asks the watch. Here a commit goes step by step, and others come in between. */
#include "datastore_fixture.h"

#include "datastore/index/indexes.h"
#include "row/row_key.h"

static unsigned looks; /* at the table */

status __real_ds_changed_since(const struct ds_snapshot *snapshot, bytes from, bytes to,
                               struct arena *arena, bool *out);
status __wrap_ds_changed_since(const struct ds_snapshot *snapshot, bytes from, bytes to,
                               struct arena *arena, bool *out);

status __wrap_ds_changed_since(const struct ds_snapshot *snapshot, bytes from, bytes to,
                               struct arena *arena, bool *out)
{
    looks++;
    return __real_ds_changed_since(snapshot, from, to, arena, out);
}

/* A transaction that has read the kind K, and K/1 twice, and writes another. */
struct step_by_step {
    struct ds_call call;
    struct ds_commit commit;
    Ds__CommitRequest request;
    Ds__Mutation *mutation;
};

static void note(struct ds_transaction *transaction, bytes from, bytes to)
{
    assert_ok(ds_transaction_note(transaction, from, to));
}

static void note_entity(struct datastore_fixture *f, struct ds_transaction *transaction)
{
    struct buffer row = {0};
    ds_entity_row(&row, test_key(f->arena, "", "K/1"));
    size_t size = row.size;
    buffer_append_byte(&row, 0);
    note(transaction, bytes_make(row.data, size), buffer_bytes(&row));
    buffer_free(&row);
}

static void note_kind(struct datastore_fixture *f, struct ds_transaction *transaction)
{
    struct buffer from = {0};
    bytes to;
    ds_kind_prefix(&from, bytes_of(""), bytes_of("K"));
    assert_true(key_prefix_end(f->arena, buffer_bytes(&from), &to));
    note(transaction, buffer_bytes(&from), to);
    buffer_free(&from);
}

static void begin(struct datastore_fixture *f, struct step_by_step *s, int64_t id)
{
    struct ds_transaction *transaction;
    s->call = test_call(f);
    assert_ok(ds_begin(&s->call, NULL, &transaction));
    note_entity(f, transaction);
    note_kind(f, transaction);
    note_entity(f, transaction);
    s->request = (Ds__CommitRequest)DS__COMMIT_REQUEST__INIT;
    s->mutation =
        test_mutation(f->arena, "{'upsert': {'key': {'path': [{'kind': 'K', 'id': 9}]}}}");
    s->mutation->upsert->key->path[0]->id = id;
    s->request.mutations = &s->mutation;
    s->request.n_mutations = 1;
    s->commit = (struct ds_commit){.call = &s->call,
                                   .open = open_test_database(f),
                                   .database = f->database,
                                   .now_us = cluster_version_us(f->datastore.cluster),
                                   .is_transactional = true,
                                   .transaction = transaction,
                                   .is_own = true};
    assert_ok(ds_commit_prepare(&s->commit, &s->request));
}

static status look(struct step_by_step *s)
{
    looks = 0;
    status result = ds_commit_look_at_reads(&s->commit);
    assert_true(looks > 0);
    looks = 0;
    return result;
}

static status write_it(struct step_by_step *s)
{
    struct ds_commit *commit = &s->commit;
    TRY(ds_commit_read(commit));
    TRY(ds_commit_apply(commit));
    TRY(ds_commit_find_rows(commit));
    ds_commit_write(commit);
    ds_sequencer_end(&commit->open->sequencer, &commit->writing.moment);
    assert_int_equal(looks, 0);
    return commit->writing.result;
}

static void end(struct step_by_step *s)
{
    struct ds_commit *commit = &s->commit;
    ds_commit_unlock(commit);
    if (commit->indexes != NULL)
        ds_indexes_give_back(commit->open->indexes, commit->indexes);
    ds_transaction_end(s->call.datastore->transactions, commit->transaction);
}

static void assert_contended(status s)
{
    assert_string_equal(status_message(s), "too much contention on these datastore entities. "
                                           "please try again.");
    assert_status(s, STATUS_ABORTED);
}

static void put(struct datastore_fixture *f, const char *kind, int id)
{
    char json[128];
    snprintf(json, sizeof json, "{'upsert': {'key': {'path': [{'kind': '%s', 'id': %d}]}}}", kind,
             id);
    assert_ok(try_commit(f, json));
}

static void nothing_is_looked_at_with_the_moment_drawn(void **state)
{
    struct datastore_fixture *f = *state;
    struct step_by_step s;
    put(f, "K", 1);
    begin(f, &s, 9);
    put(f, "L", 1);
    assert_ok(look(&s));
    put(f, "L", 2); /* others do as they like */
    assert_ok(write_it(&s));
    end(&s);
}

static void what_has_changed_before_is_found(void **state)
{
    struct datastore_fixture *f = *state;
    struct step_by_step s;
    put(f, "K", 1);
    begin(f, &s, 9);
    put(f, "K", 2);
    assert_contended(look(&s));
    end(&s);
}

static void what_changes_afterwards_is_found(void **state)
{
    struct datastore_fixture *f = *state;
    struct step_by_step s;
    put(f, "K", 1);
    begin(f, &s, 9);
    assert_ok(look(&s));
    put(f, "K", 2);
    assert_contended(write_it(&s));
    end(&s);
}

/* Of two that both have looked, and change what the other has read, the second fails. */
static void of_two_at_a_time_one_fails(void **state)
{
    struct datastore_fixture *f = *state;
    struct step_by_step first, second;
    put(f, "K", 1);
    begin(f, &first, 9);
    begin(f, &second, 10);
    assert_ok(look(&first));
    assert_ok(look(&second));
    assert_ok(write_it(&first));
    assert_contended(write_it(&second)); /* though the first is not gone yet */
    end(&first);
    end(&second);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_datastore, teardown_datastore)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_looked_at_with_the_moment_drawn),
        TEST(what_has_changed_before_is_found),
        TEST(what_changes_afterwards_is_found),
        TEST(of_two_at_a_time_one_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
