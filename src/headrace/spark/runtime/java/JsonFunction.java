package headrace;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.Serializable;
import java.util.Collections;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The SQL function that decodes JSON: of the data, the type of the rows as Spark's JSON, and the
 * description of their fields.
 */
public final class JsonFunction extends scala.runtime.AbstractFunction1 implements Serializable {
    public Object apply(Object arguments) {
        Seq given = (Seq) arguments;
        JsonDecoder decoder;
        try {
            decoder = new JsonDecoder(new JsonType(new ObjectMapper().readTree(text(given, 2))));
        } catch (IOException e) {
            throw new IllegalArgumentException(e);
        }
        DataType type = DataType.fromJson(text(given, 1));
        Seq data = sequence(given.apply(0));
        Seq types = sequence(DataTypes.BinaryType);
        return new Invoke(
                Literal.fromObject(decoder), "decode", type, data, types, true, true, true);
    }

    private static String text(Seq arguments, int index) {
        return ((Literal) arguments.apply(index)).value().toString();
    }

    private static Seq sequence(Object only) {
        return CollectionConverters.asScala(Collections.singletonList(only)).toSeq();
    }
}
