package headrace;

import java.io.BufferedOutputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.file.CopyOption;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.StandardCopyOption;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager;

/**
 * Checkpoint files that are on the disk before they have their name, and of which nobody else can
 * make one of the same name: Spark's own are neither on a local disk or NFS. Elsewhere it is as
 * Spark's own.
 */
public class DurableCheckpointFileManager extends FileSystemBasedCheckpointFileManager {
    private final boolean local;

    public DurableCheckpointFileManager(Path path, Configuration configuration) {
        super(path, configuration);
        local = "file".equals(fs().getUri().getScheme());
    }

    public FSDataOutputStream createTempFile(Path path) throws IOException {
        if (!local) {
            return super.createTempFile(path);
        }
        File file = file(path);
        if (!file.getParentFile().isDirectory()) {
            fs().mkdirs(path.getParent());
        }
        return new FSDataOutputStream(new SyncedFile(new FileOutputStream(file)), null);
    }

    public void renameTempFile(Path source, Path target, boolean overwrite) throws IOException {
        if (!local) {
            super.renameTempFile(source, target, overwrite);
            return;
        }
        java.nio.file.Path from = file(source).toPath();
        java.nio.file.Path to = file(target).toPath();
        // A checksum that an earlier version wrote for a file of this name.
        java.nio.file.Path stale = to.resolveSibling("." + to.getFileName() + ".crc");
        if (overwrite) {
            Files.deleteIfExists(stale);
            move(from, to);
        } else {
            claim(from, to);
            Files.deleteIfExists(stale);
        }
        DurableLocalFileSystem.sync(to.getParent().toFile());
    }

    /** A link is made by one and refused to all others, even on NFS; a rename is not. */
    private static void claim(java.nio.file.Path from, java.nio.file.Path to) throws IOException {
        try {
            Files.createLink(to, from);
        } catch (UnsupportedOperationException e) {
            moveIfNew(from, to);
            return;
        } catch (java.nio.file.FileAlreadyExistsException e) {
            // The answer to a request that NFS sent twice.
            if (!Files.isSameFile(from, to)) {
                throw taken(to);
            }
        } catch (FileSystemException e) {
            moveIfNew(from, to);
            return;
        }
        Files.delete(from);
    }

    /** For file systems without links. */
    private static void moveIfNew(java.nio.file.Path from, java.nio.file.Path to)
            throws IOException {
        if (to.toFile().exists()) {
            throw taken(to);
        }
        move(from, to);
    }

    private static void move(java.nio.file.Path from, java.nio.file.Path to) throws IOException {
        Files.move(from, to, new CopyOption[] {StandardCopyOption.ATOMIC_MOVE});
    }

    private static FileAlreadyExistsException taken(java.nio.file.Path to) {
        return new FileAlreadyExistsException(to + " exists already");
    }

    private static File file(Path path) {
        return new File(path.toUri().getPath());
    }

    /** It is on the disk when it is closed. */
    private static class SyncedFile extends BufferedOutputStream {
        private final FileOutputStream file;
        private boolean closed = false;

        SyncedFile(FileOutputStream file) {
            super(file, 65536);
            this.file = file;
        }

        public void close() throws IOException {
            if (closed) {
                return;
            }
            closed = true;
            try {
                flush();
                file.getFD().sync();
            } finally {
                file.close();
            }
        }
    }
}
