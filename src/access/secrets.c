/* See secrets.h. */
#include "access/secrets.h"

#include "access/bootstrap.h"
#include "access/policy_file.h"
#include "os/file.h"

enum {
    FILE_MOST = 64 << 20,
    CHANGED_BY_OTHERS = 022, /* mode bits */
};

void secrets_free(struct secrets *secrets)
{
    tokens_free(&secrets->tokens);
    jwks_destroy(secrets->keys);
    policies_free(&secrets->policies);
    buffer_free(&secrets->keys_text);
    buffer_free(&secrets->policies_text);
}

/* --- files --- */

/* The parser's error, with the file's name before it. */
static status name_file(const char *file, status s)
{
    if (status_is_ok(s))
        return s;
    status named = status_make(s.code, "%s: %s", file, status_message(s));
    status_free(s);
    return named;
}

static status read_tokens(const struct access_options *options, struct secrets *secrets)
{
    const char *file = options->token_file;
    struct buffer text = {0};
    if (file == NULL)
        return status_ok();
    TRY(file_read(file, FILE_MOST, CHANGED_BY_OTHERS, &text));
    status s = tokens_parse(file, buffer_bytes(&text), &secrets->tokens);
    buffer_free(&text);
    return s;
}

static status read_keys(const struct access_options *options, struct secrets *secrets)
{
    const char *file = options->jwks_file;
    struct buffer *text = &secrets->keys_text;
    if (file == NULL)
        return status_ok();
    TRY(file_read(file, FILE_MOST, CHANGED_BY_OTHERS, text));
    return name_file(file, jwks_parse(buffer_bytes(text), &secrets->keys));
}

static status read_policies(const struct access_options *options, struct secrets *secrets)
{
    const char *file = options->policy_file;
    struct buffer *text = &secrets->policies_text;
    if (file == NULL)
        return status_ok();
    TRY(file_read(file, FILE_MOST, CHANGED_BY_OTHERS, text));
    return name_file(file, policy_file_parse(buffer_bytes(text), &secrets->policies));
}

static const struct reader {
    enum secrets_part part;
    status (*read)(const struct access_options *options, struct secrets *secrets);
} readers[] = {
    {SECRETS_TOKENS, read_tokens},
    {SECRETS_KEYS, read_keys},
    {SECRETS_POLICIES, read_policies},
};

enum { READERS = sizeof readers / sizeof *readers };

status secrets_read_files(const struct access_options *options, struct secrets *out)
{
    for (size_t i = 0; i < READERS; i++)
        TRY(readers[i].read(options, out));
    return status_ok();
}

/* --- the first administrator --- */

static status read_admin_token(const struct access_options *options,
                               const struct policies *policies, struct secrets *secrets)
{
    if (policies_have_owner(policies))
        return status_ok();
    TRY(bootstrap_admin(options->data_directory, options->log, secrets->admin_token));
    secrets->has_admin_token = true;
    return status_ok();
}

status secrets_read(const struct access_options *options, struct secrets *out)
{
    TRY(secrets_read_files(options, out));
    return read_admin_token(options, &out->policies, out);
}

/* --- reading again --- */

/* The errors of several files in one. */
struct trouble {
    enum status_code code; /* of the first */
    struct buffer words;
};

static void add_trouble(struct trouble *trouble, status s)
{
    if (trouble->code == STATUS_OK)
        trouble->code = s.code;
    if (trouble->words.size > 0)
        buffer_append_format(&trouble->words, "; ");
    buffer_append_format(&trouble->words, "%s", status_message(s));
    status_free(s);
}

static status status_of(struct trouble *trouble)
{
    status s = status_ok();
    if (trouble->words.failed)
        s = status_out_of_memory();
    else if (trouble->code != STATUS_OK)
        s = status_make(trouble->code, "%.*s", (int)trouble->words.size,
                        (const char *)trouble->words.data);
    buffer_free(&trouble->words);
    return s;
}

static unsigned read_each(const struct access_options *options, struct secrets *out,
                          struct trouble *trouble)
{
    unsigned unread = 0;
    for (size_t i = 0; i < READERS; i++) {
        status s = readers[i].read(options, out);
        if (status_is_ok(s))
            continue;
        unread |= readers[i].part;
        add_trouble(trouble, s);
    }
    return unread;
}

status secrets_read_again(const struct access_options *options, const struct secrets *in_force,
                          struct secrets *out, unsigned *unread)
{
    struct trouble trouble = {.code = STATUS_OK};
    *unread = read_each(options, out, &trouble);
    bool has_policies = (*unread & SECRETS_POLICIES) == 0;
    status s = read_admin_token(options, has_policies ? &out->policies : &in_force->policies, out);
    if (!status_is_ok(s)) {
        add_trouble(&trouble, s);
        out->has_admin_token = in_force->has_admin_token;
        memcpy(out->admin_token, in_force->admin_token, sizeof out->admin_token);
    }
    return status_of(&trouble);
}

void secrets_exchange(struct secrets *a, struct secrets *b, unsigned parts)
{
    struct secrets was = *a;
    if (parts & SECRETS_TOKENS) {
        a->tokens = b->tokens;
        b->tokens = was.tokens;
    }
    if (parts & SECRETS_KEYS) {
        a->keys = b->keys;
        a->keys_text = b->keys_text;
        b->keys = was.keys;
        b->keys_text = was.keys_text;
    }
    if (parts & SECRETS_POLICIES) {
        a->policies = b->policies;
        a->policies_text = b->policies_text;
        b->policies = was.policies;
        b->policies_text = was.policies_text;
    }
}

/* --- what has changed --- */

static status compare_policies(const struct secrets *before, const struct secrets *after,
                               struct arena *arena, struct audit_changes *changes)
{
    struct audit_grant *old, *fresh;
    size_t old_count, fresh_count;
    TRY(policy_file_grants(buffer_bytes(&before->policies_text), arena, &old, &old_count));
    TRY(policy_file_grants(buffer_bytes(&after->policies_text), arena, &fresh, &fresh_count));
    audit_compare_grants(old, old_count, fresh, fresh_count, changes);
    return status_ok();
}

static void compare_keys(const struct secrets *before, const struct secrets *after,
                         struct audit_changes *changes)
{
    if (!bytes_equal(buffer_bytes(&before->keys_text), buffer_bytes(&after->keys_text)))
        AUDIT_CHANGE(changes, LOG_STR("action", "CHANGE"),
                     LOG_INT("signing_keys", after->keys == NULL ? 0 : jwks_count(after->keys)));
}

status secrets_compare(const struct secrets *before, const struct secrets *after, unsigned except,
                       struct arena *arena, struct audit_changes *changes)
{
    if (!(except & SECRETS_TOKENS))
        audit_compare_tokens(&before->tokens, &after->tokens, arena, changes);
    if (!(except & SECRETS_KEYS))
        compare_keys(before, after, changes);
    return except & SECRETS_POLICIES ? status_ok()
                                     : compare_policies(before, after, arena, changes);
}
