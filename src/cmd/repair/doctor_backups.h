/* The doctor's check of backups. */
#ifndef TRESTLE_CMD_REPAIR_DOCTOR_BACKUPS_H
#define TRESTLE_CMD_REPAIR_DOCTOR_BACKUPS_H

#include <stdint.h>

/* Reads each backup of the directory `backups` in a data directory, if that is there. Prints a line
 * for each, on standard error what is wrong, and returns how many are damaged; what cannot be read
 * counts as one. */
uint64_t doctor_count_damaged_backups(const char *data_directory);

/* The same of a directory of backups, and how many were read; returns an exit status, which is 0 if
 * there are some and all are whole. */
int doctor_examine_backups(const char *directory);

#endif
