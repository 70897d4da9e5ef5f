/* `trestle backup`: whole backups in a place, made, listed, verified, restored, expired. */
#ifndef TRESTLE_CMD_BACKUP_BACKUP_H
#define TRESTLE_CMD_BACKUP_BACKUP_H

/* The arguments behind "backup"; returns the exit status. */
int backup_command(const char *const *arguments);

#endif
