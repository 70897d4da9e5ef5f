/* `trestle archive`: what an archive has, and a data directory taken on to a later moment by it. */
#ifndef TRESTLE_CMD_ARCHIVE_H
#define TRESTLE_CMD_ARCHIVE_H

/* The arguments behind "archive", ended by NULL; returns the exit status. */
int archive_command(const char *const *arguments);

#endif
