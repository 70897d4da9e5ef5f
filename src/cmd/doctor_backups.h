/* What the doctor does with backups. */
#ifndef TRESTLE_CMD_DOCTOR_BACKUPS_H
#define TRESTLE_CMD_DOCTOR_BACKUPS_H

#include <stdint.h>

/* Reads each backup in the directory, or in `below` in it if that is there (NULL: in it itself).
 * Prints a line for each, on standard error what is wrong, and returns how many are damaged; what
 * cannot be read counts as one. */
uint64_t doctor_count_damaged_backups(const char *directory, const char *below);

#endif
