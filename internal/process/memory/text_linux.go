package memory

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// ReleaseText removes the code and the constants of the program from the memory of this process.
// Pages that are used again come back from the page cache. A start reads most of them once: a
// program calls ReleaseText when it is ready. An error is only logged: the program works without.
func ReleaseText(ctx context.Context, logger *slog.Logger) {
	if err := releaseText(); err != nil {
		logger.DebugContext(ctx, "the code of the program was not removed from memory", "error", err)
	}
}

// releaseText implements ReleaseText.
func releaseText() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return err
	}
	defer f.Close()
	var start, end uintptr // of the mapping of the last header; 0 = not one of the program
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) < 3:
		case !strings.HasSuffix(fields[0], ":"):
			start, end = textMapping(fields, program)
		case fields[0] == "Anonymous:" && fields[1] == "0" && end > start:
			// Without anonymous pages, the mapping has nothing that is not in the file.
			if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, start, end-start, syscall.MADV_DONTNEED); errno != 0 {
				return fmt.Errorf("madvise: %w", errno)
			}
		}
	}
	return lines.Err()
}

// textMapping parses the header of a mapping in /proc/self/smaps, such as
// "00401000-07008000 r-xp 00001000 fe:00 123 /usr/bin/perdure". It returns 0, 0 unless the mapping
// is one of the file program that cannot be written.
func textMapping(fields []string, program string) (start, end uintptr) {
	if len(fields) != 6 || fields[5] != program || strings.Contains(fields[1], "w") {
		return 0, 0
	}
	first, last, _ := strings.Cut(fields[0], "-")
	from, errFrom := strconv.ParseUint(first, 16, 64)
	to, errTo := strconv.ParseUint(last, 16, 64)
	if errFrom != nil || errTo != nil {
		return 0, 0
	}
	return uintptr(from), uintptr(to)
}
