/* See bootstrap.h. */
#include "access/bootstrap.h"

#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static const char file_name[] = "admin-token";
enum { TOKEN_FILE_MOST = 4096, OTHERS = 077 };

static status write_token(const char *path, const char *token)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (fd < 0)
        return status_from_errno(errno, "cannot make %s", path);
    int written = dprintf(fd, "%s\n", token);
    if (close(fd) == 0 && written > 0)
        return status_ok();
    status s = status_from_errno(errno, "cannot write %s", path);
    unlink(path); /* half a token would be taken for one */
    return s;
}

static status make_token(const char *path, const struct log *log)
{
    char token[TOKEN_TEXT_SIZE];
    TRY(token_make(token));
    TRY(write_token(path, token));
    log_warn(log, "no administrator is known: made a token for one",
             LOG_STR("principal", BOOTSTRAP_PRINCIPAL), LOG_STR("file", path));
    return status_ok();
}

static status read_token(const char *path, uint8_t hash[TOKEN_HASH_SIZE])
{
    struct buffer text = {0};
    TRY(file_read(path, TOKEN_FILE_MOST, OTHERS, &text));
    bytes token = buffer_bytes(&text);
    while (token.size > 0 && token.data[token.size - 1] <= ' ')
        token.size--;
    bool is_there = token.size > 0;
    if (is_there)
        token_hash(token, hash);
    buffer_free(&text);
    if (!is_there)
        return status_make(STATUS_FAILED_PRECONDITION, "%s is empty: remove it", path);
    return status_ok();
}

status bootstrap_admin(const char *directory, const struct log *log, uint8_t hash[TOKEN_HASH_SIZE])
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s", directory, file_name) >= (int)sizeof path)
        return status_make(STATUS_INVALID_ARGUMENT, "the data directory's name is too long");
    status s = read_token(path, hash);
    if (s.code != STATUS_NOT_FOUND)
        return s;
    status_free(s);
    TRY(make_token(path, log));
    return read_token(path, hash);
}
