/* An automatic id could be one that a client was just taking.
 *
 * Read in the core by somebody who looked for lost writes. An id that a client chose, and that the
 * counter has yet to come to, is marked by a row of its commit. Until that was durable nothing told
 * of it: an automatic id drawn meanwhile could be the same, and two entities that were to be two
 * met in one. Here a commit with the very next id goes step by step. */
#include "datastore_fixture.h"

#include "datastore/commit/allocate.h"
#include "datastore/index/indexes.h"
#include "datastore/model/ids.h"

static int64_t automatic_id(struct datastore_fixture *f)
{
    Ds__Key *key = test_key(f->arena, "", "K");
    assert_ok(ds_id_allocate(&f->datastore, open_test_database(f), key, f->arena));
    return key->path[0]->id;
}

static int64_t next_id(struct datastore_fixture *f)
{
    return ds_scattered_id(ds_counter_of_id(automatic_id(f)) + 1);
}

static void begin(struct datastore_fixture *f, struct ds_call *call, struct ds_commit *commit,
                  int64_t id)
{
    Ds__CommitRequest request = DS__COMMIT_REQUEST__INIT;
    Ds__Mutation *mutation =
        test_mutation(f->arena, "{'upsert': {'key': {'path': [{'kind': 'K', 'id': 1}]}}}");
    mutation->upsert->key->path[0]->id = id;
    request.mutations = &mutation;
    request.n_mutations = 1;
    *call = test_call(f);
    *commit = (struct ds_commit){
        .call = call, .open = open_test_database(f), .database = f->database, .is_own = true};
    assert_ok(ds_commit_prepare(commit, &request));
    assert_ok(ds_commit_read(commit));
    assert_ok(ds_commit_apply(commit));
    assert_ok(ds_commit_find_rows(commit));
}

static void end(struct ds_commit *commit)
{
    ds_commit_unlock(commit);
    ds_indexes_give_back(commit->open->indexes, commit->indexes);
}

static void an_id_of_a_commit_under_way_is_passed_over(void **state)
{
    struct datastore_fixture *f = *state;
    struct ds_call call;
    struct ds_commit commit;
    int64_t id = next_id(f);
    begin(f, &call, &commit, id);
    assert_int_not_equal(automatic_id(f), id);
    ds_commit_write(&commit);
    ds_sequencer_end(&commit.open->sequencer, &commit.writing.moment);
    assert_ok(commit.writing.result);
    end(&commit);
}

static void an_id_that_was_not_taken_is_free_again(void **state)
{
    struct datastore_fixture *f = *state;
    struct ds_call call;
    struct ds_commit commit;
    int64_t id = next_id(f);
    begin(f, &call, &commit, id);
    end(&commit);
    assert_int_equal(automatic_id(f), id);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_datastore, teardown_datastore)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_id_of_a_commit_under_way_is_passed_over),
        TEST(an_id_that_was_not_taken_is_free_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
