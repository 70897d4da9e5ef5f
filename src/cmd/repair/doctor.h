/* `trestle doctor DIR`: reads a data directory from end to end and says whether it is whole;
 * `trestle doctor --backup-dir DIR`: the same for a directory of backups. */
#ifndef TRESTLE_CMD_REPAIR_DOCTOR_H
#define TRESTLE_CMD_REPAIR_DOCTOR_H

/* `arguments`: those after "doctor", ended by NULL. Returns the exit status: 0 whole, 1 damaged or
 * unreadable, 2 wrong usage. Writes what it read to standard output, damage to standard error. */
int doctor_command(const char *const *arguments);

#endif
