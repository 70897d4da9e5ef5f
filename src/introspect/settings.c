/* GetSettings: every setting as it is in force, and where it came from. */
#include "base/settings.h"
#include "introspect/methods.h"

/* The buffer's text in the arena; frees the buffer. */
static status keep_text(struct arena *arena, struct buffer *text, const char **out)
{
    *out = text->failed ? NULL : arena_string(arena, buffer_bytes(text));
    buffer_free(text);
    return *out == NULL ? status_out_of_memory() : status_ok();
}

static status describe(const struct settings *settings, size_t index, struct arena *arena,
                       Insight__Setting *out)
{
    struct buffer value = {0}, origin = {0};
    char name[OPTION_NAME_SIZE];
    const struct option *row = settings_describe(settings, index, &value, &origin);
    status s = keep_text(arena, &value, &out->value);
    if (status_is_ok(s) && settings->origins[index].source != OPTION_PRESET)
        s = keep_text(arena, &origin, &out->source);
    buffer_free(&origin);
    TRY(s);
    option_name(row, name);
    out->name = arena_string(arena, bytes_of(name));
    out->help = row->sentence;
    if (row->preset != NULL)
        out->default_value = row->preset;
    return out->name == NULL ? status_out_of_memory() : status_ok();
}

status get_settings(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Insight__GetSettingsRequest *message = (const void *)request->message;
    struct arena *arena = request->arena;
    Insight__Settings *list;
    TRY(insight_check_server(message->name));
    PROTO_NEW(arena, list, INSIGHT__SETTINGS__INIT);
    list->settings = arena_alloc(arena, SETTING_COUNT * sizeof *list->settings);
    if (list->settings == NULL)
        return status_out_of_memory();
    while (list->n_settings < SETTING_COUNT) {
        Insight__Setting *setting;
        PROTO_NEW(arena, setting, INSIGHT__SETTING__INIT);
        TRY(describe(insight_of(request)->settings, list->n_settings, arena, setting));
        list->settings[list->n_settings++] = setting;
    }
    *response = &list->base;
    return status_ok();
}
