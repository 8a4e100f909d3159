package pg

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the unprivileged user the server runs as when we are root: Postgres
// refuses to run as root. A nil account means "as ourselves".
type account struct {
	name     string
	uid, gid int
}

// unprivileged picks user postgres, else nobody, when euid is root.
func unprivileged(euid int) (*account, error) {
	if euid != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		if err1 == nil && err2 == nil && uid != 0 {
			return &account{name: name, uid: uid, gid: gid}, nil
		}
	}
	return nil, errors.New("running as root, and neither user postgres nor nobody exists to run the server as")
}

// attr makes a command run as the account.
func (a *account) attr() *syscall.SysProcAttr {
	if a == nil {
		return &syscall.SysProcAttr{}
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}}
}

// own hands a path and everything below to the account.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if ownedBy(st, a.uid) {
		return nil
	}
	return filepath.WalkDir(path, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(p, a.uid, a.gid)
	})
}

// prepareDir creates the cluster's directory (a temporary one for "") and makes
// sure the server's user can use it.
func prepareDir(dir string, a *account) (string, error) {
	var err error
	if dir == "" {
		dir, err = os.MkdirTemp("", "repute-pg-")
	} else if dir, err = filepath.Abs(dir); err == nil {
		if err = a.makeDir(dir); err == nil {
			err = a.ownDir(dir)
		}
	}
	if err != nil {
		return "", err
	}
	if a == nil {
		return dir, nil
	}
	if err := os.Lchown(dir, a.uid, a.gid); err != nil {
		return "", err
	}
	return dir, nil
}

// ownDir refuses a directory that another user may have put there: what is written in it
// would go where a link of that user leads. It may belong to us or to the server's user, and
// to nobody else who could write.
func (a *account) ownDir(dir string) error {
	st, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	ours := ownedBy(st, os.Geteuid()) || a != nil && ownedBy(st, a.uid)
	if !st.IsDir() || !ours {
		return fmt.Errorf("%s is a link, or belongs to another user: remove it, or choose another directory", dir)
	}
	return os.Chmod(dir, 0o700)
}

// makeDir creates dir for its owner alone. What is missing above it may be
// entered by the server's user, who is not us; whether the rest may is checked
// before anything is created.
func (a *account) makeDir(dir string) error {
	parent := filepath.Dir(dir)
	if a != nil {
		there := parent
		for ; there != filepath.Dir(there); there = filepath.Dir(there) {
			if _, err := os.Stat(there); err == nil {
				break
			}
		}
		if err := a.reaches(there); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	return os.MkdirAll(dir, 0o700)
}

// reaches checks that the account may enter dir and everything above it, as
// root's own home usually forbids.
func (a *account) reaches(dir string) error {
	for ; ; dir = filepath.Dir(dir) {
		st, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if st.Mode()&0o001 == 0 && !ownedBy(st, a.uid) {
			return fmt.Errorf("user %s, who runs the server because we are root, may not enter %s; choose a directory outside it, e.g. below /var/lib", a.name, dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// ownedBy reports whether a file belongs to a user.
func ownedBy(st fs.FileInfo, uid int) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == uid
}
