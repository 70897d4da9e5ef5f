/* See advise_subjects.h. A Trestle lists what is in all projects as that of "projects/-"; other
 * servers refuse the name, and have no databases of Datastore to list. */
#include "cmd/advise/advise_subjects.h"

#include "google/bigtable/admin/v2/bigtable_instance_admin.pb-c.h"
#include "google/bigtable/admin/v2/bigtable_table_admin.pb-c.h"
#include "google/firestore/admin/v1/firestore_admin.pb-c.h"

#include <string.h>

#define LIST_TABLES    "/google.bigtable.admin.v2.BigtableTableAdmin/ListTables"
#define LIST_INSTANCES "/google.bigtable.admin.v2.BigtableInstanceAdmin/ListInstances"
#define GET_INSTANCE   "/google.bigtable.admin.v2.BigtableInstanceAdmin/GetInstance"
#define LIST_DATABASES "/google.firestore.admin.v1.FirestoreAdmin/ListDatabases"

void advise_subjects_free(struct advise_subjects *subjects)
{
    buffer_free(&subjects->found);
}

size_t advise_subjects_count(const struct advise_subjects *subjects)
{
    return subjects->found.size / sizeof(struct advise_subject);
}

const struct advise_subject *advise_subjects_at(const struct advise_subjects *subjects, size_t at)
{
    return (const struct advise_subject *)(const void *)subjects->found.data + at;
}

static status add(struct advise_subjects *subjects, const struct advise_subject *subject)
{
    buffer_append(&subjects->found, subject, sizeof *subject);
    return subjects->found.failed ? status_out_of_memory() : status_ok();
}

/* The segment of a resource's name with this number; "" if there is none. NULL without memory. */
static const char *segment(const char *name, size_t number, struct arena *arena)
{
    for (; number > 0; number--) {
        name = strchr(name, '/');
        if (name == NULL)
            return "";
        name++;
    }
    return arena_string(arena, bytes_make(name, strcspn(name, "/")));
}

/* --- tables --- */

static status add_table(struct advise_subjects *subjects, const char *name)
{
    const struct advise_subject subject = {.project = segment(name, 1, subjects->arena),
                                           .instance = segment(name, 3, subjects->arena),
                                           .table = segment(name, 5, subjects->arena)};
    if (subject.project == NULL || subject.instance == NULL || subject.table == NULL)
        return status_out_of_memory();
    return add(subjects, &subject);
}

static status list_tables(struct client_session *session, const char *instance,
                          struct advise_subjects *out)
{
    BtAdmin__ListTablesRequest request = BT_ADMIN__LIST_TABLES_REQUEST__INIT;
    request.parent = instance;
    request.view = BT_ADMIN__TABLE__VIEW__NAME_ONLY;
    do {
        const ProtobufCMessage *message;
        TRY(client_session_call(session, LIST_TABLES, NULL, &request.base,
                                &bt_admin__list_tables_response__descriptor, out->arena, &message));
        const BtAdmin__ListTablesResponse *answer = (const void *)message;
        for (size_t i = 0; i < answer->n_tables; i++)
            TRY(add_table(out, answer->tables[i]->name));
        request.page_token = answer->next_page_token;
    } while (request.page_token[0] != '\0');
    return status_ok();
}

status advise_list_instance(struct client_session *session, struct advise_subjects *out)
{
    return list_tables(session, client_session_instance(session), out);
}

/* --- instances --- */

static status list_instances(struct client_session *session, const char *parent,
                             struct advise_subjects *out)
{
    BtAdmin__ListInstancesRequest request = BT_ADMIN__LIST_INSTANCES_REQUEST__INIT;
    request.parent = parent;
    do {
        const ProtobufCMessage *message;
        TRY(client_session_call(session, LIST_INSTANCES, NULL, &request.base,
                                &bt_admin__list_instances_response__descriptor, out->arena,
                                &message));
        const BtAdmin__ListInstancesResponse *answer = (const void *)message;
        for (size_t i = 0; i < answer->n_instances; i++)
            TRY(list_tables(session, answer->instances[i]->name, out));
        request.page_token = answer->next_page_token;
    } while (request.page_token[0] != '\0');
    return status_ok();
}

/* The first two segments of the instance's name. */
static const char *project_of(const struct client_session *session, struct arena *arena)
{
    const char *name = client_session_instance(session), *end = strstr(name, "/instances/");
    return end == NULL ? NULL : arena_string(arena, bytes_make(name, (size_t)(end - name)));
}

static bool is_refusal(const status *s)
{
    return s->code == STATUS_INVALID_ARGUMENT || s->code == STATUS_NOT_FOUND ||
           s->code == STATUS_PERMISSION_DENIED || s->code == STATUS_UNIMPLEMENTED;
}

status advise_check_instance(struct client_session *session, struct arena *arena)
{
    BtAdmin__GetInstanceRequest request = BT_ADMIN__GET_INSTANCE_REQUEST__INIT;
    const ProtobufCMessage *message;
    request.name = client_session_instance(session);
    status s = client_session_call(session, GET_INSTANCE, NULL, &request.base,
                                   &bt_admin__instance__descriptor, arena, &message);
    if (!is_refusal(&s) || s.code == STATUS_NOT_FOUND)
        return s;
    status_free(s);
    return status_ok();
}

static status list_all_instances(struct client_session *session, struct advise_subjects *out)
{
    status s = list_instances(session, "projects/-", out);
    if (!is_refusal(&s))
        return s;
    status_free(s);
    const char *project = project_of(session, out->arena);
    out->found.size = 0;
    return project == NULL ? status_out_of_memory() : list_instances(session, project, out);
}

/* --- databases --- */

static status add_database(struct advise_subjects *subjects, const char *name)
{
    const struct advise_subject subject = {.project = segment(name, 1, subjects->arena),
                                           .database = segment(name, 3, subjects->arena)};
    if (subject.project == NULL || subject.database == NULL)
        return status_out_of_memory();
    return add(subjects, &subject);
}

static status list_databases(struct client_session *session, struct advise_subjects *out)
{
    FsAdmin__ListDatabasesRequest request = FS_ADMIN__LIST_DATABASES_REQUEST__INIT;
    const ProtobufCMessage *message;
    request.parent = "projects/-";
    status s =
        client_session_call(session, LIST_DATABASES, NULL, &request.base,
                            &fs_admin__list_databases_response__descriptor, out->arena, &message);
    if (is_refusal(&s)) {
        status_free(s);
        return status_ok();
    }
    TRY(s);
    const FsAdmin__ListDatabasesResponse *answer = (const void *)message;
    for (size_t i = 0; i < answer->n_databases; i++)
        TRY(add_database(out, answer->databases[i]->name));
    return status_ok();
}

status advise_list_server(struct client_session *session, struct advise_subjects *out)
{
    TRY(list_all_instances(session, out));
    return list_databases(session, out);
}
