// SPDX-License-Identifier: Apache-2.0
import com.google.api.client.http.ByteArrayContent;
import com.google.api.client.http.GenericUrl;
import com.google.api.client.http.HttpRequest;
import com.google.api.client.http.javanet.NetHttpTransport;
import com.google.auth.http.HttpCredentialsAdapter;
import com.google.auth.oauth2.ComputeEngineCredentials;
import com.google.auth.oauth2.GoogleCredentials;
import com.google.auth.oauth2.IdTokenCredentials;
import com.google.auth.oauth2.IdTokenProvider;
import com.google.gson.Gson;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Calls the model as an application with google-auth-library does. Reads commands, writes answers: lines. */
public final class Client {
	private static final String SCOPE = "https://www.googleapis.com/auth/cloud-platform";
	private static final String ASK = "{\"contents\":[{\"role\":\"user\",\"parts\":[{\"text\":\"Say hello.\"}]}]}";
	private static final String MODEL = "/v1/projects/%s/locations/global/publishers/google/models/gemini-2.5-flash:generateContent";

	private GoogleCredentials credentials;

	/** An application finds its credentials once. */
	private synchronized GoogleCredentials credentials() throws Exception {
		if (credentials == null) {
			credentials = GoogleCredentials.getApplicationDefault().createScoped(SCOPE);
		}
		return credentials;
	}

	private String call() throws Exception {
		String url = System.getenv("GOOGLE_VERTEX_BASE_URL") + String.format(MODEL, "my-project");
		HttpRequest request = new NetHttpTransport()
			.createRequestFactory(new HttpCredentialsAdapter(credentials()))
			.buildPostRequest(new GenericUrl(url), ByteArrayContent.fromString("application/json", ASK));
		String answer = request.execute().parseAsString();
		return JsonParser.parseString(answer).getAsJsonObject()
			.getAsJsonArray("candidates").get(0).getAsJsonObject()
			.getAsJsonObject("content").getAsJsonArray("parts").get(0).getAsJsonObject()
			.get("text").getAsString();
	}

	private String project() throws Exception {
		return ((ComputeEngineCredentials) credentials()).getProjectId();
	}

	private String identity() throws Exception {
		return IdTokenCredentials.newBuilder()
			.setIdTokenProvider((IdTokenProvider) credentials())
			.setTargetAudience("https://service.example")
			.build().refreshAccessToken().getTokenValue();
	}

	private static Map<String, String> outcome(Callable<String> work) {
		try {
			return Map.of("text", work.call());
		} catch (Exception error) {
			StringBuilder said = new StringBuilder();
			for (Throwable each = error; each != null; each = each.getCause()) {
				said.append(each).append('\n');
			}
			return Map.of("error", said.toString());
		}
	}

	public static void main(String[] arguments) throws Exception {
		Client client = new Client();
		Map<String, Callable<String>> commands = Map.of(
			"call", client::call, "calls", client::call,
			"project", client::project, "identity", client::identity);
		ExecutorService pool = Executors.newCachedThreadPool();
		BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
		for (String line = lines.readLine(); line != null; line = lines.readLine()) {
			String[] words = line.split(" ");
			int count = words.length > 1 ? Integer.parseInt(words[1]) : 1;
			List<Future<Map<String, String>>> started = new ArrayList<>();
			for (int i = 0; i < count; i++) {
				started.add(pool.submit(() -> outcome(commands.get(words[0]))));
			}
			List<Map<String, String>> outcomes = new ArrayList<>();
			for (Future<Map<String, String>> each : started) {
				outcomes.add(each.get());
			}
			System.out.println(new Gson().toJson(outcomes));
		}
		// Not waited for: the library keeps threads of its own.
		System.exit(0);
	}
}
