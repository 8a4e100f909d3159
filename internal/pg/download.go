package pg

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

const (
	// repository has the archives of Postgres binaries that zonkyio publishes.
	repository = "https://repo1.maven.org/maven2"
	// maxArchive bounds a download; archives have 10 to 60 MB.
	maxArchive = 200 << 20
	// downloadTimeout bounds a download, of 200 MB at 1 MB/s.
	downloadTimeout = 5 * time.Minute
)

// archiveHashes are the SHA-256 hashes of the archives that may be run, by platform and
// version. A host's own hash file proves nothing about that host. They are renewed with the
// library's versions: sha256sum of each archive that archiveURL names.
func archiveHashes() map[string]string {
	return map[string]string{
		"darwin-amd64 14.18.0":       "0e4764346ad227223e7ea0d679e508067e5809cf640a5146c1d3d701db90941c",
		"darwin-amd64 15.13.0":       "1befcdf1f4ef59aaac5efbff997de798984f7a03ab1fb6b32771fbfb21178dc5",
		"darwin-amd64 16.9.0":        "0be7111599308e8a670ae72e9512a4b902dabe3e2e0cda0539a0447a5bdacb26",
		"darwin-amd64 17.5.0":        "fb70f783928e77c3d6ef5ca8ed644f1ac502f740fcfc032a375c8347820f2bdd",
		"darwin-amd64 18.3.0":        "cb68c57232945f5e74db946e6077d70cec56bfed35959b21acc750cc80ca0977",
		"darwin-arm64v8 16.9.0":      "53b2672c602e16e4c94fb56b9aa68cc26a0bbb0df851f256f41a2cdbeccc9cb6",
		"darwin-arm64v8 17.5.0":      "e9d3398e10c2ec926395498b03e75ad1a24eeaed82895e756a7e173b202cf6de",
		"darwin-arm64v8 18.3.0":      "a18ec9ec6a905e04f5a08a8f7870bddadd635feb54dee332a3daf80fada3cb1a",
		"linux-amd64 14.18.0":        "d08a4c4703faf3f78ed74af72f1794d32ad3798f7dedf46abd383f809a99262b",
		"linux-amd64 15.13.0":        "cc0177d8a22b85ed266f6204c0642fd5c24ab583d1ef221d4b60bce29d4fa4ef",
		"linux-amd64 16.9.0":         "d983cee24678490199e1684d6a93f49f84673696cb6f0db64e880a4cf233017b",
		"linux-amd64 17.5.0":         "646f3269075d1a23904127374e3cdbcef96beb32979fedee25d835877400fcbe",
		"linux-amd64 18.3.0":         "1974c3a59c3ae010e9818e81637e425aad94eaac26e4ef533b42e081fe7ca345",
		"linux-amd64-alpine 14.18.0": "c714033647d894b90f146aa24aad13d54a4851f76cdc3903e33807024614d449",
		"linux-amd64-alpine 15.13.0": "73c825eba923c8faa8059a5f9af7d20c9800b7feba901110fdc3487400905a80",
		"linux-amd64-alpine 16.9.0":  "2a82d0d9266d46976be463ecf76b89f72e614d867e26b7fe8cf038fe7e05f075",
		"linux-amd64-alpine 17.5.0":  "7122386c7f7a089568f05720ada63448093d4065abbc0a89e6dc660851a53e3c",
		"linux-amd64-alpine 18.3.0":  "510fd314da39f1eeccef774a92428474168fedf55403342548e2adeaed66b483",
		"linux-arm64v8 16.9.0":       "9d113402f70f4d134250916319ad83e87cba3796bd73a606c28dbabd326b4fa3",
		"linux-arm64v8 17.5.0":       "e02f27ff50ff2d90b6541d54f3f108505aacd84ea53c2890e976a684bfea2752",
		"linux-arm64v8 18.3.0":       "1fb555a6602c13a113ab1f0cc9224d599948e85e51ac5f001393605505eaf78e",
	}
}

// platform names a build as the archives do.
func platform(system, architecture string, alpine bool) string {
	if architecture == "arm64" {
		architecture = "arm64v8"
	}
	if system == "linux" && alpine {
		architecture += "-alpine"
	}
	return system + "-" + architecture
}

func isAlpine() bool {
	_, err := os.Stat("/etc/alpine-release")
	return err == nil
}

// archiveURL returns where a repository of Maven artifacts has the binaries of a platform.
func archiveURL(host, platform string, version embeddedpostgres.PostgresVersion) string {
	name := "embedded-postgres-binaries-" + platform
	return fmt.Sprintf("%s/io/zonky/test/postgres/%s/%s/%s-%s.jar", host, name, version, name, version)
}

// download puts the binaries' archive where the library looks for it before it would
// download by itself. Nothing is written unless the archive has the pinned hash.
func download(ctx context.Context, host, platform string, version embeddedpostgres.PostgresVersion,
	cache string) error {
	want, known := archiveHashes()[platform+" "+string(version)]
	if !known {
		return fmt.Errorf("no hash of Postgres %s for %s is known, so it is not fetched", version, platform)
	}
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	archive, err := get(ctx, archiveURL(host, platform, version))
	if err != nil {
		return fmt.Errorf("download Postgres %s: %w", version, err)
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(archive)); got != want {
		return fmt.Errorf("the archive of Postgres %s for %s has the hash %s, not %s: it is not run", version, platform,
			got, want)
	}
	binaries, err := inside(archive)
	if err != nil {
		return fmt.Errorf("unpack Postgres %s: %w", version, err)
	}
	name := fmt.Sprintf("embedded-postgres-binaries-%s-%s.txz", platform, version)
	return os.WriteFile(filepath.Join(cache, name), binaries, 0o644)
}

// get downloads a file of at most maxArchive bytes into memory, where its checksum is compared
// before anything is unpacked.
func get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", request.URL.Host, answer.Status)
	}
	b, err := io.ReadAll(io.LimitReader(answer.Body, maxArchive+1))
	if err == nil && len(b) > maxArchive {
		err = fmt.Errorf("more than %d bytes", maxArchive)
	}
	return b, err
}

// inside returns the compressed binaries in an archive.
func inside(archive []byte) ([]byte, error) {
	files, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, err
	}
	for _, f := range files.File {
		if !strings.HasSuffix(f.Name, ".txz") {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return io.ReadAll(io.LimitReader(r, maxArchive))
	}
	return nil, errors.New("no .txz is in the archive")
}
