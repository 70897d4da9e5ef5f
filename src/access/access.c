/* See access.h.
 *
 * Invariants
 *  1. `secrets` and the policies change only with `lock` held for writing, and `generation` goes up
 *     before it is released.
 *  2. A peer's memory is of the generation that it has noted, which was read before the rights were
 *     looked up: at worst it is thrown away too soon. */
#include "access/access.h"

#include "access/bootstrap.h"
#include "access/rules.h"
#include "access/secrets.h"
#include "base/check.h"
#include "wire/rest.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    ARENA_MOST = 256 << 20, /* in which files are compared with what they were */
    REMEMBERED = 8,         /* resources of one connection; a power of two */
    VERIFIED = 1024,        /* signed tokens of all connections; a power of two */
};

/* A signed token that was found good. */
struct verified {
    uint8_t hash[TOKEN_HASH_SIZE];
    char *principal; /* NULL: a free place */
    int64_t expires_us;
    uint64_t generation;
};

struct access {
    uint32_t magic;
    struct access_options options;
    struct rule_table rules;
    bool notes_data; /* calls for data have a note of their caller, too */

    pthread_mutex_t reloading; /* one at a time; `secrets` change with it held alone */
    pthread_rwlock_t lock;
    struct secrets secrets;
    struct policies stored; /* that clients have set */
    _Atomic(uint64_t) generation;

    pthread_mutex_t verified_lock;
    struct verified verified[VERIFIED]; /* by hash; a newer one takes the place */
};
#define ACCESS_MAGIC 0x41434353u

/* A client's identity. */
struct identity {
    struct buffer principal; /* empty: has shown nothing */
    bool is_owner;
    int64_t expires_us; /* clock_wall_us */
};

struct remembered {
    struct buffer name;
    struct granted granted;
};

struct access_peer {
    bool is_fellow;
    bool is_gateway;          /* the next two are those of the call's client */
    struct buffer subject;    /* of the certificate, and a NUL; empty: none */
    struct buffer address;    /* and a NUL */
    uint64_t generation;      /* of all that follows */
    bool is_known;            /* the identity is that of `credential` */
    struct buffer credential; /* the header's value; empty: there was none */
    struct identity identity;
    struct remembered remembered[REMEMBERED]; /* what the identity may do */
};

/* --- files --- */

status access_try_files(const struct access_options *options)
{
    struct secrets secrets = {0};
    status s = secrets_read_files(options, &secrets);
    secrets_free(&secrets);
    return s;
}

static status open_files(struct access *access)
{
    struct secrets fresh = {0};
    status s = secrets_read(&access->options, &fresh);
    if (status_is_ok(s))
        access->secrets = fresh;
    else
        secrets_free(&fresh);
    return s;
}

/* Takes the fresh ones, but of what is unread keeps what there is; the rest is the caller's. */
static struct secrets replace_secrets(struct access *access, const struct secrets *fresh,
                                      unsigned unread)
{
    pthread_rwlock_wrlock(&access->lock);
    struct secrets old = access->secrets;
    access->secrets = *fresh;
    secrets_exchange(&access->secrets, &old, unread);
    atomic_fetch_add(&access->generation, 1);
    pthread_rwlock_unlock(&access->lock);
    return old;
}

/* It is in force already: what cannot be told for want of memory is not. */
static void tell_changes(struct access *access, const struct secrets *before, unsigned unread,
                         status result, struct buffer *words)
{
    struct arena *arena = arena_create(ARENA_MOST);
    struct audit_changes *changes = arena == NULL ? NULL : arena_zalloc(arena, sizeof *changes);
    if (changes != NULL) {
        status_ignore(secrets_compare(before, &access->secrets, unread, arena, changes));
        audit_changes_write(changes, words);
    }
    bool has_any = changes != NULL && changes->count > 0;
    audit_reload(access->options.audit, "access control", result,
                 has_any || status_is_ok(result) ? changes : NULL);
    arena_destroy(arena);
}

static void show(const struct access *access, status result)
{
    struct condition *condition = access->options.condition;
    if (status_is_ok(result))
        condition_leave(condition, REASON_access_unread);
    else
        condition_enter(condition, REASON_access_unread, "what was withdrawn still counts: %s",
                        status_message(result));
}

/* With `reloading` held. */
static status reload(struct access *access, struct buffer *words)
{
    struct secrets fresh = {0};
    unsigned unread;
    status s = secrets_read_again(&access->options, &access->secrets, &fresh, &unread);
    struct secrets old = replace_secrets(access, &fresh, unread);
    tell_changes(access, &old, unread, s, words);
    secrets_free(&old);
    show(access, s);
    return s;
}

status access_reload(struct access *access, struct buffer *words)
{
    pthread_mutex_lock(&access->reloading);
    status s = reload(access, words);
    pthread_mutex_unlock(&access->reloading);
    return s;
}

/* --- life --- */

status access_open(const struct access_options *options, const struct grpc_service *const *services,
                   size_t service_count, struct access **out)
{
    *out = NULL;
    struct access *access = calloc(1, sizeof *access);
    if (access == NULL)
        return status_out_of_memory();
    access->magic = ACCESS_MAGIC;
    access->options = *options;
    access->notes_data = options->audit != NULL && audit_wants_data(options->audit);
    pthread_rwlock_init(&access->lock, NULL);
    pthread_mutex_init(&access->reloading, NULL);
    pthread_mutex_init(&access->verified_lock, NULL);
    atomic_store(&access->generation, 1); /* peers begin with 0: they know nothing */
    status s = rule_table_create(services, service_count, &access->rules);
    if (status_is_ok(s))
        s = open_files(access);
    if (!status_is_ok(s)) {
        access_close(access);
        return s;
    }
    *out = access;
    return s;
}

void access_close(struct access *access)
{
    if (access == NULL)
        return;
    CHECK_MAGIC(access, ACCESS_MAGIC);
    secrets_free(&access->secrets);
    policies_free(&access->stored);
    for (size_t i = 0; i < VERIFIED; i++)
        free(access->verified[i].principal);
    rule_table_free(&access->rules);
    pthread_mutex_destroy(&access->reloading);
    pthread_rwlock_destroy(&access->lock);
    pthread_mutex_destroy(&access->verified_lock);
    access->magic = 0;
    free(access);
}

/* --- policies --- */

status access_set_policy(struct access *access, bytes resource,
                         const struct access_binding *bindings, size_t count)
{
    pthread_rwlock_wrlock(&access->lock);
    status s = policies_set(&access->stored, resource, bindings, count);
    atomic_fetch_add(&access->generation, 1);
    pthread_rwlock_unlock(&access->lock);
    return s;
}

void access_drop_policy(struct access *access, bytes resource)
{
    pthread_rwlock_wrlock(&access->lock);
    policies_remove(&access->stored, resource);
    atomic_fetch_add(&access->generation, 1);
    pthread_rwlock_unlock(&access->lock);
}

static struct permission_set grant(struct access *access, bytes principal, bool is_owner,
                                   bytes resource)
{
    struct permission_set set;
    if (is_owner && role_find(bytes_of("roles/owner"), &set))
        return set;
    pthread_rwlock_rdlock(&access->lock);
    set = permission_set_union(policies_grant(&access->secrets.policies, principal, resource),
                               policies_grant(&access->stored, principal, resource));
    pthread_rwlock_unlock(&access->lock);
    return set;
}

struct permission_set access_granted(struct access *access, const struct access_caller *caller,
                                     bytes resource)
{
    return grant(access, caller->principal, caller->is_owner, resource);
}

/* --- the caller's identity --- */

static bool set_identity(struct identity *identity, const char *principal, int64_t expires_us)
{
    buffer_clear(&identity->principal);
    buffer_append_bytes(&identity->principal, bytes_of(principal));
    identity->is_owner = false;
    identity->expires_us = expires_us;
    return !identity->principal.failed;
}

/* With the lock held for reading. False: there is no such token. */
static bool find_static(struct access *access, const uint8_t hash[TOKEN_HASH_SIZE],
                        struct identity *identity, status *s)
{
    const struct secrets *secrets = &access->secrets;
    bool is_admin =
        secrets->has_admin_token && memcmp(hash, secrets->admin_token, TOKEN_HASH_SIZE) == 0;
    const struct token *token = is_admin ? NULL : tokens_find(&secrets->tokens, hash);
    if (!is_admin && token == NULL)
        return false;
    int64_t expires_us = is_admin ? INT64_MAX : token->expires_us;
    if (expires_us != INT64_MAX && clock_wall_us(access->options.clock) >= expires_us)
        *s = status_make(STATUS_UNAUTHENTICATED, "the token has expired");
    else if (!set_identity(identity, is_admin ? BOOTSTRAP_PRINCIPAL : token->principal, expires_us))
        *s = status_out_of_memory();
    identity->is_owner = is_admin;
    return true;
}

static struct verified *verified_place(struct access *access, const uint8_t *hash)
{
    size_t index = (size_t)hash[0] | (size_t)hash[1] << 8;
    return &access->verified[index & (VERIFIED - 1)];
}

static bool recall_verified(struct access *access, const uint8_t *hash, uint64_t generation,
                            struct identity *identity)
{
    pthread_mutex_lock(&access->verified_lock);
    const struct verified *place = verified_place(access, hash);
    bool is_there = place->principal != NULL && place->generation == generation &&
                    memcmp(place->hash, hash, TOKEN_HASH_SIZE) == 0 &&
                    clock_wall_us(access->options.clock) < place->expires_us &&
                    set_identity(identity, place->principal, place->expires_us);
    pthread_mutex_unlock(&access->verified_lock);
    return is_there;
}

/* Takes the principal. */
static void note_verified(struct access *access, const uint8_t *hash, uint64_t generation,
                          char *principal, int64_t expires_us)
{
    pthread_mutex_lock(&access->verified_lock);
    struct verified *place = verified_place(access, hash);
    free(place->principal);
    *place = (struct verified){
        .principal = principal, .expires_us = expires_us, .generation = generation};
    memcpy(place->hash, hash, TOKEN_HASH_SIZE);
    pthread_mutex_unlock(&access->verified_lock);
}

/* With the lock held for reading. */
static status verify_signed(struct access *access, bytes token, const uint8_t *hash,
                            struct identity *identity)
{
    const struct jwt_expectation expected = {.issuer = access->options.issuer,
                                             .audience = access->options.audience};
    uint64_t generation = atomic_load(&access->generation);
    char *principal;
    int64_t expires_us;
    if (access->secrets.keys == NULL)
        return status_make(STATUS_UNAUTHENTICATED, "the token is not known");
    if (recall_verified(access, hash, generation, identity))
        return status_ok();
    TRY(jwt_verify(access->secrets.keys, &expected, token, clock_wall_us(access->options.clock),
                   &principal, &expires_us));
    if (!set_identity(identity, principal, expires_us)) {
        free(principal);
        return status_out_of_memory();
    }
    note_verified(access, hash, generation, principal, expires_us);
    return status_ok();
}

/* "Bearer <token>"; schemes are written in any case. */
static bool bearer_token(bytes credential, bytes *token)
{
    static const char scheme[] = "bearer ";
    size_t size = sizeof scheme - 1;
    if (credential.size <= size || strncasecmp((const char *)credential.data, scheme, size) != 0)
        return false;
    *token = bytes_from(credential, size);
    return true;
}

static status identify_token(struct access *access, bytes credential, struct identity *identity)
{
    uint8_t hash[TOKEN_HASH_SIZE];
    bytes token;
    status s = status_ok();
    if (!bearer_token(credential, &token))
        return status_make(STATUS_UNAUTHENTICATED, "it is no bearer token");
    token_hash(token, hash);
    pthread_rwlock_rdlock(&access->lock);
    if (!find_static(access, hash, identity, &s))
        s = verify_signed(access, token, hash, identity);
    pthread_rwlock_unlock(&access->lock);
    return s;
}

static status identify(struct access *access, struct access_peer *peer, bytes credential)
{
    struct identity *identity = &peer->identity;
    if (credential.size > 0)
        return identify_token(access, credential, identity);
    if (!set_identity(identity, "", INT64_MAX))
        return status_out_of_memory();
    if (peer->subject.size > 0)
        buffer_append_format(&identity->principal, "cert:%s", (const char *)peer->subject.data);
    return identity->principal.failed ? status_out_of_memory() : status_ok();
}

/* A refusal in production's words, with the reason at the end. */
static status word_refusal(status s)
{
    if (s.code != STATUS_UNAUTHENTICATED)
        return s;
    status worded =
        status_make(STATUS_UNAUTHENTICATED,
                    "Request had invalid authentication credentials. Expected OAuth 2 access "
                    "token, login cookie or other valid authentication credential. (%s)",
                    status_message(s));
    status_free(s);
    return worded;
}

static void free_peer(struct access_peer *peer)
{
    for (size_t i = 0; i < REMEMBERED; i++)
        buffer_free(&peer->remembered[i].name);
    buffer_free(&peer->credential);
    buffer_free(&peer->identity.principal);
    buffer_free(&peer->subject);
    buffer_free(&peer->address);
}

static void forget_all(struct access_peer *peer)
{
    peer->is_known = false;
    for (size_t i = 0; i < REMEMBERED; i++)
        buffer_clear(&peer->remembered[i].name);
}

/* Replaces the text, with a NUL after it. */
static void set_text(struct buffer *text, bytes value)
{
    buffer_clear(text);
    if (value.size > 0) {
        buffer_append_bytes(text, value);
        buffer_append_byte(text, '\0');
    }
}

/* Makes a gateway the client that it speaks for in this call. */
static status become_client(struct access_peer *peer, struct grpc_call *call)
{
    bytes subject, address;
    bool is_known = grpc_call_header(call, REST_CLIENT_ADDRESS, &address);
    grpc_call_header(call, REST_CLIENT_SUBJECT, &subject);
    set_text(&peer->subject, subject);
    set_text(&peer->address, is_known ? address : bytes_of("REST"));
    forget_all(peer);
    return peer->subject.failed || peer->address.failed ? status_out_of_memory() : status_ok();
}

/* Makes the peer's identity that of the credential. */
static status recognise(struct access *access, struct access_peer *peer, bytes credential)
{
    uint64_t generation = atomic_load(&access->generation);
    const struct identity *identity = &peer->identity;
    if (peer->is_known && peer->generation == generation &&
        bytes_equal(buffer_bytes(&peer->credential), credential) &&
        (identity->expires_us == INT64_MAX ||
         clock_wall_us(access->options.clock) < identity->expires_us))
        return status_ok();
    forget_all(peer);
    peer->generation = generation;
    status s = identify(access, peer, credential);
    if (!status_is_ok(s))
        return word_refusal(s);
    buffer_clear(&peer->credential);
    buffer_append_bytes(&peer->credential, credential);
    peer->is_known = !peer->credential.failed;
    return status_ok();
}

/* --- whether the caller may --- */

struct question {
    struct access *access;
    struct access_peer *peer;
};

/* A role on a table or a view lets its holder query that, which is done in the instance. */
static bool may_query_inside(struct access *access, bytes principal, bytes instance)
{
    const enum access_permission query = PERMISSION_instances_executeQuery;
    pthread_rwlock_rdlock(&access->lock);
    bool may = policies_grant_inside(&access->secrets.policies, principal, instance, query) ||
               policies_grant_inside(&access->stored, principal, instance, query);
    pthread_rwlock_unlock(&access->lock);
    return may;
}

/* The name by which policies know a resource: `text` has room for a project's. False for one whose
 * id is longer than any may be. */
enum { PROJECT_ID_MOST = 200 };
static bool name_in_policies(enum access_kind kind, bytes *name, char text[PROJECT_ID_MOST + 16])
{
    if (kind != KIND_PROJECT_ID)
        return true;
    if (name->size > PROJECT_ID_MOST)
        return false;
    int size = snprintf(text, PROJECT_ID_MOST + 16, "projects/%.*s", (int)name->size,
                        (const char *)name->data);
    *name = bytes_make(text, (size_t)size);
    return true;
}

static bool look_up(void *context, bytes name, struct granted *out)
{
    const struct question *question = context;
    struct access_peer *peer = question->peer;
    struct remembered *place = &peer->remembered[bytes_hash(name) & (REMEMBERED - 1)];
    if (bytes_equal(buffer_bytes(&place->name), name)) {
        *out = place->granted;
        return true;
    }
    char text[PROJECT_ID_MOST + 16];
    bytes known = name;
    if (!resource_kind(name, &out->kind) || !name_in_policies(out->kind, &known, text))
        return false;
    out->set = grant(question->access, buffer_bytes(&peer->identity.principal),
                     peer->identity.is_owner, known);
    if (out->kind == KIND_INSTANCE &&
        may_query_inside(question->access, buffer_bytes(&peer->identity.principal), name))
        permission_set_add(&out->set, PERMISSION_instances_executeQuery);
    buffer_clear(&place->name);
    buffer_append_bytes(&place->name, name);
    if (place->name.failed)
        buffer_clear(&place->name);
    place->granted = *out;
    return true;
}

/* A caller without identity may do what allUsers may; refused, it is asked for one first. */
static status demand_identity(bytes principal, status s)
{
    if (s.code != STATUS_PERMISSION_DENIED || principal.size > 0)
        return s;
    status_free(s);
    return status_make(STATUS_UNAUTHENTICATED,
                       "Request is missing required authentication credential. Expected OAuth 2 "
                       "access token, login cookie or other valid authentication credential.");
}

/* For the handler and the audit log. Without memory the call is refused: it would go unseen. */
static status note_caller(struct grpc_call *call, const struct rule *rule,
                          const struct access_peer *peer, bool is_recognised, bytes request,
                          bytes decided)
{
    struct arena *arena = grpc_call_arena(call);
    struct access_caller *caller = arena_zalloc(arena, sizeof *caller);
    bytes principal = bytes_make(NULL, 0);
    struct rule_subject subject;
    if (caller == NULL)
        return status_out_of_memory();
    if (is_recognised)
        principal = buffer_bytes(&peer->identity.principal);
    TRY(rule_subject(rule, request, decided, arena, &subject));
    *caller = (struct access_caller){
        .principal = arena_copy(arena, principal),
        .is_owner = is_recognised && peer->identity.is_owner,
        .is_administration = rule->is_administration,
        .is_poll = rule->is_poll,
        .resource = subject.name,
        .source = subject.source,
        .address = arena_string(arena, bytes_of(access_peer_address(peer))),
    };
    if (caller->principal.size != principal.size || caller->address == NULL)
        return status_out_of_memory();
    grpc_call_set_note(call, caller);
    return status_ok();
}

static bool is_forwarded(const struct access_peer *peer, struct grpc_call *call)
{
    bytes by;
    return peer->is_fellow && grpc_call_header(call, ACCESS_FORWARDED_BY, &by);
}

status access_admit(struct access *access, struct access_peer *peer, struct grpc_call *call,
                    size_t method_index, bytes request)
{
    const struct rule *rule = &access->rules.rules[method_index];
    struct question question = {.access = access, .peer = peer};
    bytes credential, resource = {0};
    if (rule->count == 0 || is_forwarded(peer, call))
        return status_ok();
    if (peer->is_gateway)
        TRY(become_client(peer, call));
    grpc_call_header(call, "authorization", &credential);
    status s = recognise(access, peer, credential);
    bool is_recognised = status_is_ok(s);
    if (is_recognised)
        s = demand_identity(buffer_bytes(&peer->identity.principal),
                            rule_check(rule, request, look_up, &question, &resource));
    bool is_noted = rule->is_administration || rule->names_more || access->notes_data;
    if (status_is_ok(s) && !is_noted)
        return s;
    if (!is_recognised)
        resource = rule_name(rule, request); /* what the client tried to get at */
    status noted = note_caller(call, rule, peer, is_recognised, request, resource);
    if (status_is_ok(noted))
        return s;
    status_ignore(s);
    return noted;
}

status access_admit_anybody(const struct audit *audit, const struct rule_table *rules,
                            struct access_peer *peer, struct grpc_call *call, size_t method_index,
                            bytes request)
{
    const struct rule *rule = &rules->rules[method_index];
    if (rule->count == 0 || (!rule->is_administration && !audit_wants_data(audit)))
        return status_ok();
    if (peer->is_gateway)
        TRY(become_client(peer, call));
    return note_caller(call, rule, peer, false, request, rule_name(rule, request));
}

/* For one question alone: `peer` is all zeroes, and free_peer's afterwards. */
static status recognise_once(struct access *access, const struct http_client *client,
                             bytes credential, struct access_peer *peer)
{
    set_text(&peer->subject, bytes_of(client->subject == NULL ? "" : client->subject));
    if (peer->subject.failed)
        return status_out_of_memory();
    return recognise(access, peer, credential);
}

void access_note_refusal(struct access *access, const char *page, const struct http_client *client,
                         status why)
{
    audit_refused_page(access->options.audit, page, bytes_make(NULL, 0), client->address, why);
}

status access_identify(struct access *access, const struct http_client *client, bytes credential,
                       struct buffer *principal)
{
    struct access_peer peer = {0};
    status s = recognise_once(access, client, credential, &peer);
    if (status_is_ok(s))
        buffer_append_bytes(principal, buffer_bytes(&peer.identity.principal));
    if (principal->failed && status_is_ok(s))
        s = status_out_of_memory();
    free_peer(&peer);
    return s;
}

status access_check(struct access *access, const char *page, const struct http_client *client,
                    bytes credential, enum access_permission permission, bytes resource)
{
    struct access_peer peer = {0};
    status s = recognise_once(access, client, credential, &peer);
    if (status_is_ok(s)) {
        const struct identity *identity = &peer.identity;
        struct permission_set set =
            grant(access, buffer_bytes(&identity->principal), identity->is_owner, resource);
        if (!permission_set_has(set, permission))
            s = demand_identity(buffer_bytes(&identity->principal),
                                status_make(STATUS_PERMISSION_DENIED,
                                            "Access denied. Missing IAM permission: %s.",
                                            permission_name(permission)));
    }
    audit_refused_page(access->options.audit, page, buffer_bytes(&peer.identity.principal),
                       client->address, s);
    free_peer(&peer);
    return s;
}

status access_demand(struct access *access, const struct access_caller *caller,
                     enum access_permission permission, bytes resource)
{
    if (permission_set_has(access_granted(access, caller, resource), permission))
        return status_ok();
    return demand_identity(caller->principal, rule_deny(permission, resource));
}

/* A call's note is always a caller (note_caller), which no other thread changes meanwhile. */
struct access_caller *access_caller(const struct grpc_call *call)
{
    return (struct access_caller *)(uintptr_t)grpc_call_note(call);
}

/* The subject of the certificate that the call's client has shown; empty: none. */
static bytes subject_of(struct grpc_call *call, const struct access_peer *peer)
{
    bytes subject = bytes_make(NULL, 0);
    if (peer == NULL)
        return subject;
    if (!peer->is_gateway)
        return bytes_of(peer->subject.size > 0 ? (const char *)peer->subject.data : "");
    grpc_call_header(call, REST_CLIENT_SUBJECT, &subject);
    return subject;
}

void access_append_principal(struct access *access, struct grpc_call *call,
                             const struct access_peer *peer, struct buffer *principal)
{
    struct access_peer asked = {0};
    bytes credential;
    set_text(&asked.subject, subject_of(call, peer));
    grpc_call_header(call, "authorization", &credential);
    status s =
        asked.subject.failed ? status_out_of_memory() : recognise(access, &asked, credential);
    if (status_is_ok(s))
        buffer_append_bytes(principal, buffer_bytes(&asked.identity.principal));
    status_ignore(s);
    free_peer(&asked);
}

bytes access_call_address(struct grpc_call *call, const struct access_peer *peer)
{
    bytes address = bytes_make(NULL, 0);
    if (peer == NULL)
        return address;
    if (!peer->is_gateway)
        return bytes_of(access_peer_address(peer));
    return grpc_call_header(call, REST_CLIENT_ADDRESS, &address) ? address : bytes_of("REST");
}

/* --- peers --- */

struct access_peer *access_peer_create(char *subject, const char *address)
{
    struct access_peer *peer = calloc(1, sizeof *peer);
    if (peer != NULL) {
        set_text(&peer->subject, bytes_of(subject == NULL ? "" : subject));
        set_text(&peer->address, bytes_of(address));
    }
    free(subject);
    if (peer == NULL || (!peer->subject.failed && !peer->address.failed))
        return peer;
    access_peer_destroy(peer);
    return NULL;
}

struct access_peer *access_gateway_create(void)
{
    struct access_peer *peer = calloc(1, sizeof *peer);
    if (peer != NULL)
        peer->is_gateway = true;
    return peer;
}

void access_peer_set_fellow(struct access_peer *peer, bool is_fellow)
{
    DCHECK(!peer->is_gateway);
    peer->is_fellow = is_fellow;
}

bool access_peer_is_fellow(const struct access_peer *peer)
{
    return peer != NULL && peer->is_fellow;
}

const char *access_peer_subject(const struct access_peer *peer)
{
    return peer->subject.size > 0 ? (const char *)peer->subject.data : NULL;
}

const char *access_peer_address(const struct access_peer *peer)
{
    return (const char *)peer->address.data;
}

void access_peer_destroy(struct access_peer *peer)
{
    if (peer != NULL)
        free_peer(peer);
    free(peer);
}
