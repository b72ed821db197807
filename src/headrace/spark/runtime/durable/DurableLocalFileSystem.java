package headrace;

import com.globalmentor.apache.hadoop.fs.BareLocalFileSystem;
import java.io.File;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.channels.FileChannel;
import java.nio.file.OpenOption;
import java.nio.file.StandardOpenOption;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * Local files that are on the disk once they are closed, and directories once they are made. Spark
 * copies the files of a state's snapshot this way.
 */
public class DurableLocalFileSystem extends BareLocalFileSystem {
    public FSDataOutputStream create(
            Path path,
            FsPermission permission,
            boolean overwrite,
            int bufferSize,
            short replication,
            long blockSize,
            Progressable progress)
            throws IOException {
        FSDataOutputStream made =
                super.create(
                        path, permission, overwrite, bufferSize, replication, blockSize, progress);
        return new FSDataOutputStream(new SyncedOnClose(made, pathToFile(path)), null);
    }

    public boolean mkdirs(Path path, FsPermission permission) throws IOException {
        return madeDurably(path, super.mkdirs(path, permission));
    }

    public boolean mkdirs(Path path) throws IOException {
        return madeDurably(path, super.mkdirs(path));
    }

    /** Up to where it makes no difference: the first few may be new, too. */
    private boolean madeDurably(Path path, boolean made) throws IOException {
        File above = pathToFile(path).getParentFile();
        for (int level = 0; made && level < 3 && above != null; level++) {
            if (above.canRead()) {
                sync(above);
            }
            above = above.getParentFile();
        }
        return made;
    }

    static void sync(File file) throws IOException {
        FileChannel channel =
                FileChannel.open(file.toPath(), new OpenOption[] {StandardOpenOption.READ});
        try {
            channel.force(true);
        } finally {
            channel.close();
        }
    }

    private static class SyncedOnClose extends FilterOutputStream {
        private final File file;
        private boolean closed = false;

        SyncedOnClose(OutputStream out, File file) {
            super(out);
            this.file = file;
        }

        public void write(byte[] bytes, int offset, int length) throws IOException {
            out.write(bytes, offset, length);
        }

        public void close() throws IOException {
            if (closed) {
                return;
            }
            closed = true;
            out.close();
            DurableLocalFileSystem.sync(file);
            File checksums = new File(file.getParentFile(), "." + file.getName() + ".crc");
            if (checksums.exists()) {
                DurableLocalFileSystem.sync(checksums);
            }
            DurableLocalFileSystem.sync(file.getParentFile());
        }
    }
}
