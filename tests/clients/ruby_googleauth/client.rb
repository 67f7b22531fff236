# SPDX-License-Identifier: Apache-2.0
# frozen_string_literal: true

# Calls the model as an application with googleauth does. Reads commands, writes answers: lines.
require "googleauth"
require "json"
require "net/http"

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
ASK = { contents: [{ role: "user", parts: [{ text: "Say hello." }] }] }.to_json
MODEL = "/v1/projects/my-project/locations/global/publishers/google/models/gemini-2.5-flash:generateContent"

# Not get_application_default: its look for an endpoint ends after 0.1 s, on a loaded machine too.
CREDENTIALS = Google::Auth::GCECredentials.new(scope: SCOPE)

def call
  headers = { "Content-Type" => "application/json" }
  CREDENTIALS.apply!(headers)
  headers["Authorization"] = headers.delete(:authorization)
  answer = Net::HTTP.post(URI(ENV.fetch("GOOGLE_VERTEX_BASE_URL") + MODEL), ASK, headers)
  raise answer.body unless answer.is_a?(Net::HTTPOK)

  JSON.parse(answer.body).dig("candidates", 0, "content", "parts", 0, "text")
end

def outcome
  { text: call }
rescue StandardError => e
  { error: "#{e.class}: #{e.message}" }
end

$stdout.sync = true
$stdin.each_line do |line|
  _, count = line.split
  puts Array.new((count || 1).to_i) { Thread.new { outcome } }.map(&:value).to_json
end
