/* What SQLite of that time expects of every Unix and WASI does not have. Nobody calls it: files are not locked, and the
 * owner of a file is looked at for root alone. */
#include <fcntl.h>
#include <sys/types.h>

#define F_RDLCK 0
#define F_WRLCK 1
#define F_UNLCK 2
#define F_GETLK 5
#define F_SETLK 6

static inline int fchown(int fd, uid_t owner, gid_t group) { return 0; }
static inline uid_t geteuid(void) { return 1; }
#include <unistd.h>

#define getpid() 1
