/* Lines from a terminal, by libedit.
 *
 * While a line is edited, Ctrl-C is a key and no signal, so that there is nothing to be
 * interrupted: it ends the line, which is then dropped. Otherwise it is the terminal's again. */
#include "cmd/sql/sql_shell.h"

#include <errno.h>
#include <fcntl.h>
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

enum { HISTORY_ENTRIES = 2000 };

struct shell_reader {
    EditLine *editor;
    History *history;
    const char *history_file; /* NULL: none */
    bool has_begun;
    bool is_abandoned;
};

static struct shell_reader *reader_of(EditLine *editor)
{
    void *reader = NULL;
    el_get(editor, EL_CLIENTDATA, &reader);
    return reader;
}

static char *prompt(EditLine *editor)
{
    static char first[] = "sql> ", next[] = "  -> ";
    return reader_of(editor)->has_begun ? next : first;
}

/* The next byte of the terminal; -1 at its end. */
static int read_byte(char *out)
{
    ssize_t size;
    do
        size = read(STDIN_FILENO, out, 1);
    while (size < 0 && errno == EINTR);
    return size == 1 ? 0 : -1;
}

/* A character as libedit asks for one; Ctrl-C as the end of the line. */
static int read_key(EditLine *editor, wchar_t *out)
{
    enum { CONTROL_C = 3 };
    mbstate_t state = {0};
    size_t taken;
    do {
        char byte;
        if (read_byte(&byte) != 0)
            return 0;
        taken = mbrtowc(out, &byte, 1, &state);
    } while (taken == (size_t)-2);
    if (taken == (size_t)-1)
        *out = L'?'; /* no character of the locale's */
    if (*out == CONTROL_C) {
        reader_of(editor)->is_abandoned = true;
        *out = L'\n';
    }
    return 1;
}

/* The terminal takes libedit's settings over from its own whenever they differ: so its mode for
 * editing is begun here, and then has no key of interruption. */
static void take_control_c(EditLine *editor)
{
    (void)el_set(editor, EL_PREP_TERM, 1);
    (void)el_set(editor, EL_SETTY, "-d", "intr=", NULL);
}

/* libedit takes lines apart by the locale: one without UTF-8 would cut characters. */
static void use_utf8(void)
{
    if (setlocale(LC_CTYPE, "") == NULL || strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
        (void)setlocale(LC_CTYPE, "C.UTF-8");
}

static status set_up_editor(struct shell_reader *reader)
{
    EditLine *editor = reader->editor;
    bool fine = el_set(editor, EL_CLIENTDATA, reader) == 0 &&
                el_set(editor, EL_PROMPT, prompt) == 0 && el_set(editor, EL_EDITOR, "emacs") == 0 &&
                el_set(editor, EL_HIST, history, reader->history) == 0;
    (void)el_source(editor, NULL); /* ~/.editrc, if there is one */
    fine = fine && el_set(editor, EL_SIGNAL, 1) == 0 && el_set(editor, EL_GETCFN, read_key) == 0;
    return fine ? status_ok() : status_make(STATUS_INTERNAL, "cannot set up the line editor");
}

static status set_up_history(struct shell_reader *reader)
{
    HistEvent event;
    if (history(reader->history, &event, H_SETSIZE, HISTORY_ENTRIES) < 0 ||
        history(reader->history, &event, H_SETUNIQUE, 1) < 0)
        return status_make(STATUS_INTERNAL, "cannot set up the history");
    if (reader->history_file != NULL)
        (void)history(reader->history, &event, H_LOAD, reader->history_file); /* may be new */
    return status_ok();
}

static status open_reader(struct shell_reader *reader)
{
    reader->history = history_init();
    reader->editor = el_init("trestle", stdin, stdout, stderr);
    if (reader->history == NULL || reader->editor == NULL)
        return status_make(STATUS_UNAVAILABLE, "cannot use this terminal");
    TRY(set_up_history(reader));
    return set_up_editor(reader);
}

status shell_reader_create(const char *history_file, struct shell_reader **out)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    (*out)->history_file = history_file;
    use_utf8();
    status s = open_reader(*out);
    if (!status_is_ok(s)) {
        shell_reader_destroy(*out);
        *out = NULL;
    }
    return s;
}

void shell_reader_destroy(struct shell_reader *reader)
{
    if (reader == NULL)
        return;
    if (reader->editor != NULL)
        el_end(reader->editor);
    if (reader->history != NULL)
        history_end(reader->history);
    free(reader);
}

enum shell_line shell_reader_next(struct shell_reader *reader, bool has_begun, bytes *line)
{
    int size = 0;
    reader->has_begun = has_begun;
    reader->is_abandoned = false;
    take_control_c(reader->editor);
    const char *text = el_gets(reader->editor, &size);
    if (reader->is_abandoned)
        return LINE_ABANDONED;
    if (text == NULL || size <= 0)
        return LINE_END;
    *line = bytes_of(text); /* the size is in characters, by some versions */
    if (line->size > 0 && line->data[line->size - 1] == '\n')
        line->size--;
    return LINE_TYPED;
}

/* The history may be read by its owner alone. */
static FILE *open_history(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return NULL;
    FILE *file = fchmod(fd, 0600) == 0 ? fdopen(fd, "w") : NULL;
    if (file == NULL)
        close(fd);
    return file;
}

void shell_reader_remember(struct shell_reader *reader, bytes text)
{
    HistEvent event;
    char *entry = bytes_to_string(text);
    if (entry != NULL)
        (void)history(reader->history, &event, H_ENTER, entry);
    free(entry);
    FILE *file = reader->history_file == NULL ? NULL : open_history(reader->history_file);
    if (file == NULL)
        return;
    (void)history(reader->history, &event, H_SAVE_FP, file);
    (void)fclose(file); /* a history that is not kept is no reason to stop */
}
